// Package certmanager plays cert-manager as far as a private authority needs it: Issuers and ClusterIssuers of the
// kinds selfSigned and ca, and the Certificates that name them, which it really signs. It plays while the Deployment
// cert-manager is available; the CAs of webhooks that name a Certificate are filled in while cert-manager-cainjector
// is.
//
// Sources, in cert-manager/cert-manager v1.21.1 (24e33194):
//
//   - pkg/issuer/ca/setup.go, pkg/issuer/selfsigned/setup.go: conditions of issuers. A ClusterIssuer's Secret is looked
//     up in cert-manager's own namespace, an Issuer in the Certificate's alone.
//   - internal/controller/certificates/policies (NewTriggerPolicyChain, NewReadinessPolicyChain, checks.go): why a
//     Certificate is signed or not Ready, in this order and in these words. pkg/util/pki/match.go: which fields are
//     compared, and how loosely where cert-manager did not fill the Secret.
//   - internal/controller/certificates/certificates.go (CertificateOwnsSecret): of two Certificates with one Secret,
//     the one that filled it keeps it.
//   - pkg/util/pki/renewaltime.go: when it is renewed. pkg/util/pki/generate.go, certificatetemplate.go,
//     pkg/api/util/usages.go: keys, their encoding and the certificates.
//   - pkg/controller/certificates/issuing/internal/secret.go and internal/controller/certificates/secrets.go: keys,
//     labels and annotations of the Secret; pkg/util/useragent.go: the field manager. issuing_controller.go: the
//     revision, and that the condition Issuing goes.
//   - pkg/controller/certificates/keymanager/keymanager_controller.go: with rotationPolicy Never a key that does not
//     fit is not replaced, and nothing is issued.
//   - pkg/controller/cainjector/sources.go: ca.crt of the Secret that the named Certificate has filled.
//
// Known differences: no CertificateRequest is made, so nothing says why an issuer does not sign, no failure is counted
// and none is backed off from but that of BackOff; a Secret whose pair was exchanged for another that fits is kept; a
// duration that was added to a Certificate without one has it issued again. An Ingress makes no Certificate. ca.crt is
// the issuer's own certificate even if that is not a root, and tls.crt has no chain. spec.renewal and rarer usages are
// not read, and changes of usages and secretTemplate alone not noticed. The Secret is updated, not applied. CAs are
// injected into MutatingWebhookConfigurations alone.
//
// Invented: Expire. Upstream goes on trying to renew, and has no Certificate that waits until somebody asks.
package certmanager

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/standin"
)

// Namespace is where cert-manager runs and looks for the Secrets of ClusterIssuers.
const Namespace = "cert-manager"

// manager is the field manager (pkg/util/useragent.go, and the name of the controller).
const manager = "cert-manager-certificates-issuing"

var (
	certificates   = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	issuers        = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "issuers"}
	clusterIssuers = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "clusterissuers"}
)

// issuer is an Issuer or a ClusterIssuer.
type issuer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SelfSigned *struct{} `json:"selfSigned"`
		CA         *struct {
			SecretName string `json:"secretName"`
		} `json:"ca"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions,omitempty"`
	} `json:"status"`
}

// Player plays for one cluster.
type Player struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	end     func()

	mu      sync.Mutex
	expired map[string]bool // namespace/name of what has run out and is not renewed
	backs   map[string]bool // those of them that back off from a failure
}

// Start plays until Close, or until ctx ends.
func Start(ctx context.Context, config *rest.Config) (*Player, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p := &Player{client: client, dynamic: untyped, expired: map[string]bool{}, backs: map[string]bool{}}
	p.end, err = standin.LoopOnChange(ctx, config, p.Look, clusterIssuers, issuers, certificates,
		corev1.SchemeGroupVersion.WithResource("secrets"), appsv1.SchemeGroupVersion.WithResource("deployments"),
		admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"))
	return p, err
}

// Close ends it, and leaves what it made.
func (p *Player) Close() { p.end() }

// Expire makes a Certificate one that expired an hour ago and is not renewed until somebody asks for it: by another
// specification, as cmctl renew does, or by deleting its Secret. Upstream has no such state (see the package's
// comment): one whose issuer fails is issued again by itself, and while it backs off from a failure, deleting the
// Secret does not help (pkg/controller/certificates/trigger/trigger_controller.go, shouldBackoffReissuingOnFailure).
func (p *Player) Expire(ctx context.Context, namespace, name string) error {
	p.mu.Lock()
	p.expired[namespace+"/"+name] = true
	p.mu.Unlock()
	return p.Look(ctx)
}

// BackOff makes a Certificate one that expired an hour ago and backs off from a failed issuance, until somebody sets
// the condition Issuing, as cmctl renew does, or changes its specification. Deleting its Secret does not help
// (pkg/controller/certificates/trigger/trigger_controller.go, ProcessItem and shouldBackoffReissuingOnFailure).
func (p *Player) BackOff(ctx context.Context, namespace, name string) error {
	p.mu.Lock()
	p.expired[namespace+"/"+name], p.backs[namespace+"/"+name] = true, true
	err := p.status(ctx, certificates, namespace, name, func(status map[string]any) {
		status["lastFailureTime"], status["failedIssuanceAttempts"] = time.Now().UTC().Format(time.RFC3339), int64(6)
	})
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return p.Look(ctx)
}

// Renew signs a Certificate again, as it does by itself when it is time to.
func (p *Player) Renew(ctx context.Context, namespace, name string) error {
	p.mu.Lock()
	err := p.status(ctx, certificates, namespace, name, func(status map[string]any) {
		all, _, _ := unstructured.NestedSlice(status, "conditions")
		status["conditions"] = append(all, map[string]any{
			"type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
			"message":            "Certificate re-issuance manually triggered",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
	})
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return p.Look(ctx)
}

// Look does once what is to be done.
func (p *Player) Look(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	runs, err := p.client.AppsV1().Deployments(Namespace).Get(ctx, "cert-manager", metav1.GetOptions{})
	if err != nil || runs.Status.AvailableReplicas == 0 {
		return err
	}
	var faults []error
	for _, resource := range []schema.GroupVersionResource{clusterIssuers, issuers} {
		faults = append(
			faults, each(ctx, p.dynamic, resource, func(i *issuer) error { return p.keepIssuer(ctx, resource, i) }),
		)
	}
	// Authorities first: others are signed with them in the same look.
	for _, authority := range []bool{true, false} {
		faults = append(faults, each(ctx, p.dynamic, certificates, func(c *certificate) error {
			if c.Spec.IsCA != authority || c.DeletionTimestamp != nil {
				return nil
			}
			return p.keep(ctx, c)
		}))
	}
	return errors.Join(append(faults, p.inject(ctx))...)
}

// each calls do for each object of a resource.
func each[T any](
	ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, do func(*T) error,
) error {
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var faults []error
	for i := range list.Items {
		o := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, o); err != nil {
			faults = append(faults, err)
			continue
		}
		faults = append(faults, do(o))
	}
	return errors.Join(faults...)
}

// keepIssuer says in an issuer's status whether it can sign.
func (p *Player) keepIssuer(ctx context.Context, resource schema.GroupVersionResource, i *issuer) error {
	ready := condition{Type: "Ready", Status: "True", Reason: "IsReady", Message: ""}
	switch {
	case i.Spec.CA != nil:
		ready.Reason, ready.Message = "KeyPairVerified", "Signing CA verified"
		if _, err := p.authority(ctx, i); err != nil {
			ready.Status, ready.Reason, ready.Message = "False", "ErrGetKeyPair", "Error getting keypair for CA issuer: "+
				err.Error()
			if errors.Is(err, errNotCA) {
				ready.Reason = "ErrInvalidKeyPair"
			}
		}
	case i.Spec.SelfSigned == nil:
		ready.Status, ready.Reason, ready.Message = "False", "StandIn", notPlayed+
			"only issuers of the kinds selfSigned and ca are played"
	}
	ready.ObservedGeneration = i.Generation
	now, changed := with(i.Status.Conditions, ready)
	if !changed {
		return nil
	}
	return p.status(ctx, resource, i.Namespace, i.Name, func(status map[string]any) { status["conditions"] = plain(now) })
}

var errNotCA = errors.New("certificate is not a CA")

// authority returns the pair with which a ca issuer signs.
func (p *Player) authority(ctx context.Context, i *issuer) (*pair, error) {
	namespace := i.Namespace
	if namespace == "" {
		namespace = Namespace
	}
	secret, err := p.client.CoreV1().Secrets(namespace).Get(ctx, i.Spec.CA.SecretName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	found, err := parse(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, err
	}
	if !found.cert.IsCA {
		return nil, errNotCA
	}
	return found, nil
}

// find returns the issuer that a Certificate names. One that is of the wrong
// kind, or in another namespace, is not there.
func (p *Player) find(ctx context.Context, c *certificate) (*issuer, error) {
	ref := c.Spec.IssuerRef
	var client dynamic.ResourceInterface
	switch ref.Kind {
	case "", "Issuer":
		client = p.dynamic.Resource(issuers).Namespace(c.Namespace)
	case "ClusterIssuer":
		client = p.dynamic.Resource(clusterIssuers)
	default:
		return nil, fmt.Errorf("invalid value %q for issuerRef.kind", ref.Kind)
	}
	if ref.Group != "" && ref.Group != issuerGroup {
		return nil, fmt.Errorf(notPlayed+"no issuer of the group %q is played", ref.Group)
	}
	o, err := client.Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s %q not found: %w", "Referenced", kindOr(ref.Kind), err)
	}
	found := &issuer{}
	return found, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, found)
}

func kindOr(kind string) string {
	if kind == "" {
		return "Issuer"
	}
	return kind
}

// condition is one of an issuer's or a Certificate's status.
type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
}

// with returns conditions with one of them as it is now, and whether that is new.
func with(all []condition, c condition) ([]condition, bool) {
	c.LastTransitionTime = time.Now().UTC().Format(time.RFC3339)
	i := slices.IndexFunc(all, func(was condition) bool { return was.Type == c.Type })
	if i < 0 {
		return append(all, c), true
	}
	if all[i].Status == c.Status {
		c.LastTransitionTime = all[i].LastTransitionTime
	}
	changed := all[i] != c
	all = slices.Clone(all)
	all[i] = c
	return all, changed
}

func plain(all []condition) []any {
	var out []any
	for _, c := range all {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
		if err == nil {
			out = append(out, fields)
		}
	}
	return out
}

// status changes the status of an object as it is now.
func (p *Player) status(
	ctx context.Context, resource schema.GroupVersionResource, namespace, name string, change func(map[string]any),
) error {
	client := dynamic.ResourceInterface(p.dynamic.Resource(resource))
	if namespace != "" {
		client = p.dynamic.Resource(resource).Namespace(namespace)
	}
	o, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	was := runtime.DeepCopyJSON(status)
	change(status)
	if reflect.DeepEqual(was, status) {
		return nil
	}
	o.Object["status"] = status
	_, err = client.UpdateStatus(ctx, o, metav1.UpdateOptions{FieldManager: manager})
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}
