// Package certmanager fakes cert-manager, limited to a private CA. It supports the issuer types selfSigned and ca, and
// their Certificates. The certificates are real. It runs while the Deployment cert-manager is available. While the
// Deployment cert-manager-cainjector is available, it also injects CAs into webhooks.
//
// Sources, in cert-manager/cert-manager v1.21.1 (24e33194):
//
//   - pkg/issuer/ca/setup.go, pkg/issuer/selfsigned/setup.go: conditions of issuers. The Secret of a ClusterIssuer is
//     read from cert-manager's own namespace, the Secret of an Issuer only from the Certificate's namespace.
//   - internal/controller/certificates/policies (NewTriggerPolicyChain, NewReadinessPolicyChain, checks.go): the
//     reasons why a Certificate is issued or not Ready, with their order and messages. pkg/util/pki/match.go: the
//     fields that are compared, and how strictly if cert-manager did not write the Secret.
//   - internal/controller/certificates/certificates.go (CertificateOwnsSecret): if two Certificates name the same
//     Secret, the first Certificate to write it owns it.
//   - pkg/util/pki/renewaltime.go: the renewal time. pkg/util/pki/generate.go, certificatetemplate.go,
//     pkg/api/util/usages.go: keys, their encoding and the certificates.
//   - pkg/controller/certificates/issuing/internal/secret.go and internal/controller/certificates/secrets.go: keys,
//     labels and annotations of the Secret; pkg/util/useragent.go: the field manager. issuing_controller.go: the
//     revision, and the removal of the condition Issuing.
//   - pkg/controller/certificates/keymanager/keymanager_controller.go: with rotationPolicy Never a key that does not
//     match is not replaced, and nothing is issued.
//   - pkg/controller/cainjector/sources.go: the injected CA is ca.crt in the Secret of the named Certificate.
//
// Known differences: no CertificateRequest is created, so no object reports why an issuer does not sign. Failures are
// not counted and cause no backoff, except after BackOff. A Secret whose key pair was replaced by another matching
// pair is kept. Adding spec.duration to a Certificate reissues it. An Ingress does not create a Certificate. ca.crt is
// the issuer's own certificate even if it is not a root, and tls.crt has no chain. spec.renewal and rarer usages are
// not read, and a change of only usages or secretTemplate is not detected. The Secret is updated, not applied. CAs are
// injected only into MutatingWebhookConfigurations.
//
// Expire has no equivalent in upstream. Upstream keeps retrying the renewal, so no Certificate waits for a user to
// request a renewal.
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

// Namespace is the namespace of cert-manager and of the Secrets for ClusterIssuers.
const Namespace = "cert-manager"

// manager is the field manager. In upstream it is the name of the controller (pkg/util/useragent.go).
const manager = "cert-manager-certificates-issuing"

var (
	certificates   = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	issuers        = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "issuers"}
	clusterIssuers = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "clusterissuers"}
)

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

// Player is the fake cert-manager of one cluster.
type Player struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	end     func()

	mu      sync.Mutex
	expired map[string]bool // Certificates that stay expired, by namespace/name
	backs   map[string]bool // expired Certificates that back off after a failure, by namespace/name
}

// Start runs cert-manager until Close is called or ctx is done.
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

// Close stops cert-manager. Its objects remain.
func (p *Player) Close() { p.end() }

// Expire replaces a certificate with one that expired an hour ago. The Certificate is not renewed until a user changes
// the spec, requests a renewal (cmctl renew) or deletes the Secret. Upstream has no such state, because it retries
// automatically after a failure. During a backoff, deleting the Secret does not help in upstream
// (pkg/controller/certificates/trigger/trigger_controller.go, shouldBackoffReissuingOnFailure).
func (p *Player) Expire(ctx context.Context, namespace, name string) error {
	p.mu.Lock()
	p.expired[namespace+"/"+name] = true
	p.mu.Unlock()
	return p.Look(ctx)
}

// BackOff replaces a certificate with one that expired an hour ago, as if its renewal had failed. The Certificate is
// not renewed until a user changes the spec or sets the condition Issuing (cmctl renew). Deleting the Secret does not
// help (pkg/controller/certificates/trigger/trigger_controller.go, ProcessItem and shouldBackoffReissuingOnFailure).
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

// Renew reissues a Certificate, as cert-manager does automatically at the renewal time.
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

// Look reconciles every issuer and Certificate once.
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
	// CAs first, so that they can sign the other Certificates in the same call.
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

// each calls do for every object of a resource.
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

// keepIssuer sets an issuer's Ready condition.
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
			"only issuers of the kinds selfSigned and ca are supported"
	}
	ready.ObservedGeneration = i.Generation
	now, changed := with(i.Status.Conditions, ready)
	if !changed {
		return nil
	}
	return p.status(ctx, resource, i.Namespace, i.Name, func(status map[string]any) { status["conditions"] = plain(now) })
}

var errNotCA = errors.New("certificate is not a CA")

// authority returns the key pair of a CA issuer.
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

// find returns the issuer of a Certificate. It returns an error if the issuer does not exist or if its kind is not
// supported.
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
		return nil, fmt.Errorf(notPlayed+"issuers of the group %q are not supported", ref.Group)
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

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
}

// with adds c to the conditions, or replaces the condition of the same type. The bool reports whether anything changed.
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

// status updates the status of an object. It reads the current version first.
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
