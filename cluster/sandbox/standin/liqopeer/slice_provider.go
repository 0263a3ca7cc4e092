package liqopeer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/sandbox/standin"
)

// usuallyGranted lists a slice's default resources in the chart (deployments/liqo/values.yaml,
// offloading.defaultNodeResources).
const usuallyGranted = "cpu=4,memory=8Gi,pods=110,ephemeral-storage=20Gi"

// granted returns a slice's default resources (--default-node-resources).
func (l *look) granted() corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, one := range strings.Split(cmp.Or(l.flags["default-node-resources"], usuallyGranted), ",") {
		name, amount, _ := strings.Cut(one, "=")
		if quantity, err := resource.ParseQuantity(amount); err == nil {
			out[corev1.ResourceName(name)] = quantity
		}
	}
	return out
}

// apiServerLabels lists labels of control plane nodes. The API server is reachable at the address of such a node.
var apiServerLabels = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/controlplane",
}

// addressTypes lists types of node addresses in order of preference.
var addressTypes = []corev1.NodeAddressType{
	corev1.NodeExternalDNS, corev1.NodeExternalIP, corev1.NodeInternalDNS, corev1.NodeInternalIP, corev1.NodeHostName,
}

// addressOf returns the preferred address of the nodes, or "" if they have none.
func addressOf(nodes []corev1.Node) string {
	for _, kind := range addressTypes {
		for _, n := range nodes {
			for _, a := range n.Status.Addresses {
				if a.Type == kind {
					return a.Address
				}
			}
		}
	}
	return ""
}

// address returns the API server's address for consumers. It is the API server's own address if the installation
// configures an address, or else the address of a node.
//
// Source: liqotech/liqo v1.2.0, pkg/utils/apiserver/address.go (GetURL, GetAddressFromMasterNode) and
// pkg/utils/nodeUtils.go (GetAddressFromNodeList).
func (l *look) address(ctx context.Context) (string, error) {
	if l.flags["api-server-address-override"] != "" {
		return l.config.Host, nil // nothing in the sandbox listens on the configured address
	}
	for _, label := range apiServerLabels {
		nodes, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return "", err
		}
		if len(nodes.Items) == 0 {
			continue
		}
		if found := addressOf(nodes.Items); found != "" {
			return "https://" + found + ":6443", nil
		}
		return "", errors.New("no address found")
	}
	return "", errors.New(
		"no ApiServer.Address variable provided and no master node found, one of the two values must be present",
	)
}

// grant returns the requested resources, even if the cluster does not have them, and defaults for all others.
func grant(usual, asked corev1.ResourceList) corev1.ResourceList {
	all := usual.DeepCopy()
	for name, quantity := range asked {
		all[name] = quantity
	}
	return all
}

func (l *look) answerSlices(ctx context.Context) error {
	var all []error
	for i := range l.slices {
		s := &l.slices[i]
		consumer := s.Spec.ConsumerClusterID
		if consumer == "" || len(s.Spec.CSR) == 0 || !l.replicatedFrom(s.ObjectMeta, consumer) || s.DeletionTimestamp != nil {
			continue
		}
		all = append(all, l.answerSlice(ctx, s))
	}
	return errors.Join(append(all, l.sweep(ctx))...)
}

// answerSlice updates a slice's status, regardless of the Tenant's condition.
//
// Source: liqotech/liqo v1.2.0,
// pkg/liqo-controller-manager/authentication/remoteresourceslice-controller/remoteresourceslice_controller.go
// (handleAuthenticationStatus, handleResourcesStatus; the same in v1.0.3) and ../csr.go.
func (l *look) answerSlice(ctx context.Context, s *slice) error {
	t := l.tenantOf(s.Spec.ConsumerClusterID)
	if t == nil || t.Status.TenantNamespace != s.Namespace {
		return l.warn(ctx, refer(s), "TenantNotFound",
			fmt.Sprintf("no tenant exists for cluster %q in this namespace", s.Spec.ConsumerClusterID))
	}
	if err := l.limit(ctx, s); err != nil {
		return err
	}
	now := s.Status
	further, err := l.answerIdentity(ctx, s, &now)
	if further {
		l.answerResources(t, s, &now)
	}
	return errors.Join(err, report(ctx, l.site, resourceSlices, s, now))
}

// answerIdentity sets the Authentication condition. further reports whether to grant resources next. If the slice is
// denied, only an event contains the reason.
func (l *look) answerIdentity(ctx context.Context, s *slice, now *sliceStatus) (further bool, err error) {
	deny := func(reason string, why error) error {
		now.Conditions = with(now.Conditions, condition{
			Type: authenticationCondition, Status: denied, Reason: "ResourceSliceAuthenticationDenied",
			Message: "the slice's identity is denied",
		})
		return l.warn(ctx, refer(s), reason, why.Error())
	}
	if err := examine(s.Spec.CSR, s.Name, s.Spec.ConsumerClusterID); err != nil {
		return true, deny("InvalidCSR", err)
	}
	signed, err := l.certificate(ctx, s)
	if errors.Is(err, errOtherCSR) || errors.Is(err, errNotSigned) {
		return false, deny("AuthParamsFailed", err)
	}
	if err != nil || len(signed) == 0 {
		return false, err
	}
	address, err := l.address(ctx)
	if err != nil {
		return false, deny("AuthParamsFailed", err)
	}
	now.AuthParams = &authParams{APIServer: address, CA: l.config.CAData, SignedCRT: signed}
	now.Conditions = with(now.Conditions, condition{
		Type: authenticationCondition, Status: accepted, Reason: "ResourceSliceAuthenticationAccepted",
		Message: "the certificate is signed",
	})
	return true, nil
}

// answerResources sets the granted resources. It ignores a slice with another class, because another controller handles
// it.
func (l *look) answerResources(t *tenant, s *slice, now *sliceStatus) {
	switch t.Spec.TenantCondition {
	case active:
		if s.Spec.Class != "" && s.Spec.Class != "default" {
			return
		}
		now.Resources = grant(l.granted(), s.Spec.Resources)
		now.Conditions = with(now.Conditions, condition{
			Type: resourcesCondition, Status: accepted, Reason: "ResourceSliceResourcesAccepted",
			Message: "granted as requested, without a check of the available resources",
		})
		return
	case cordoned:
		if says(now.Conditions, resourcesCondition) != "" {
			return
		}
	}
	now.Conditions = with(now.Conditions, condition{
		Type: resourcesCondition, Status: denied, Reason: "ResourceSliceResourcesDenied",
		Message: "the slice's resources are denied",
	})
}

// errOtherCSR is upstream's error if a slice's certificate request differs from the signed one
// (pkg/identityManager/interface.go).
var errOtherCSR = errors.New("the stored and the provided CSR do not match")

// signWithin is how long upstream waits for a signer. After that, upstream denies the slice and creates a new
// CertificateSigningRequest.
const signWithin = 30 * time.Second

var errNotSigned = errors.New("the context was canceled before the certificate was issued")

// overdue reports whether a request has waited too long for its certificate.
func overdue(asked *certificatesv1.CertificateSigningRequest, now time.Time) bool {
	return len(asked.Status.Certificate) == 0 && now.Sub(asked.CreationTimestamp.Time) > signWithin
}

// certificate returns the signed certificate of a slice as PEM. It creates a CertificateSigningRequest, and returns no
// certificate until the request is signed. It stores the certificate in a Secret that is never deleted. After that, it
// rejects a different certificate request for the same slice name.
//
// Source: liqotech/liqo v1.2.0, pkg/identityManager/certificateIdentityProvider.go (GetRemoteCertificate,
// ApproveSigningRequest, storeRemoteCertificate) and utils.go (EnsureCertificate).
func (l *look) certificate(ctx context.Context, s *slice) ([]byte, error) {
	kept, err := standin.Got[corev1.Secret](ctx, l.seen, kubeSecrets, s.Namespace, remoteCertificate+s.Name)
	switch {
	case err == nil && string(kept.Data["csr"]) != string(s.Spec.CSR):
		return nil, errOtherCSR
	case err == nil:
		return kept.Data["certificate"], nil
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(s.UID), s.Spec.CSR...))
	name := "liqo-identity-" + hex.EncodeToString(sum[:8])
	requests := l.client.CertificatesV1().CertificateSigningRequests()
	asked, err := requests.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		asked, err = requests.Create(ctx, &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: mark(), Labels: map[string]string{
				remoteClusterID: s.Spec.ConsumerClusterID, resourceSliceName: s.Name,
			}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    s.Spec.CSR,
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Usages: []certificatesv1.KeyUsage{
					certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
				},
			},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	if signed := asked.Status.Certificate; len(signed) > 0 {
		_, err := l.client.CoreV1().Secrets(s.Namespace).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: remoteCertificate + s.Name, Namespace: s.Namespace, Annotations: mark(),
				Labels: map[string]string{remoteClusterID: s.Spec.ConsumerClusterID, managed: yes},
			},
			Data: map[string][]byte{"csr": s.Spec.CSR, "certificate": signed},
		}, metav1.CreateOptions{FieldManager: controllerManager})
		return signed, ignoreTaken(err)
	}
	if overdue(asked, time.Now()) {
		return nil, errNotSigned
	}
	if len(asked.Status.Conditions) > 0 {
		return nil, nil
	}
	asked.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "IdentityManagerApproval",
		Message: "approved by the sandbox instead of Liqo's controllers",
	}}
	_, err = requests.UpdateApproval(ctx, name, asked, metav1.UpdateOptions{})
	return nil, err
}

// quotaName returns the name of a slice's Quota. The user that the Quota limits has the same name.
func quotaName(s *slice) string { return subject(s.Name, s.Spec.ConsumerClusterID).CommonName }

// isCordoned reports whether a slice or its Tenant is cordoned. The consumer cannot use more of a cordoned slice.
func isCordoned(s *slice) bool {
	for _, key := range []string{cordon, cordonTenant} {
		if value, ok := s.Annotations[key]; ok && value != "false" && value != "False" && value != "0" {
			return true
		}
	}
	return false
}

// limit creates or updates a slice's Quota, and cordons it if the slice is cordoned.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/quotacreator-controller/quotacreator_controller.go.
func (l *look) limit(ctx context.Context, s *slice) error {
	if says(s.Status.Conditions, resourcesCondition) != accepted {
		return nil
	}
	wanted := quotaSpec{
		User:      quotaName(s),
		Resources: s.Status.Resources, LimitsEnforcement: cmp.Or(l.flags["default-limits-enforcement"], "None"),
	}
	if on := true; isCordoned(s) {
		wanted.Cordoned = &on
	}
	for i := range l.quotas {
		q := &l.quotas[i]
		if q.Name != quotaName(s) || q.Namespace != s.Namespace {
			continue
		}
		if equality.Semantic.DeepEqual(q.Spec, wanted) {
			return nil
		}
		return l.put(ctx, quotas, q, "/spec", wanted)
	}
	return create(ctx, l.site, quotas, "Quota", quota{
		ObjectMeta: metav1.ObjectMeta{
			Name: quotaName(s), Namespace: s.Namespace, OwnerReferences: owned(s), Annotations: mark(),
			Labels: map[string]string{remoteClusterID: s.Spec.ConsumerClusterID, resourceSliceName: s.Name},
		},
		Spec: wanted,
	})
}

// sweep deletes the Quotas and CertificateSigningRequests of deleted slices.
func (l *look) sweep(ctx context.Context) error {
	var all []error
	for i := range l.quotas {
		if q := &l.quotas[i]; q.Labels[resourceSliceName] != "" && l.sliceOf(q.ObjectMeta) == nil {
			all = append(all, l.remove(ctx, quotas, q))
		}
	}
	requests := l.client.CertificatesV1().CertificateSigningRequests()
	asked, err := standin.Listed[certificatesv1.CertificateSigningRequest](
		ctx, l.seen, kubeRequests, "", resourceSliceName,
	)
	if err != nil {
		return errors.Join(append(all, err)...)
	}
	for _, r := range asked {
		if !l.sliceFrom(r.Labels[resourceSliceName], r.Labels[remoteClusterID]) {
			all = append(all, ignoreMissing(requests.Delete(ctx, r.Name, metav1.DeleteOptions{})))
		}
	}
	return errors.Join(all...)
}

// sliceFrom reports whether the consumer has a slice with the given name.
func (l *look) sliceFrom(name, consumer string) bool {
	for _, s := range l.slices {
		if s.Name == name && l.replicatedFrom(s.ObjectMeta, consumer) {
			return true
		}
	}
	return false
}
