package liqopeer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/sandbox/standin"
)

// granted is what a slice gets that does not ask.
var granted = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("4"),
	corev1.ResourceMemory:           resource.MustParse("8Gi"),
	corev1.ResourcePods:             resource.MustParse("110"),
	corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
}

// grant returns what a slice gets: what it asks for, whether it is there or not.
func grant(asked corev1.ResourceList) corev1.ResourceList {
	all := granted.DeepCopy()
	for name, quantity := range asked {
		all[name] = quantity
	}
	return all
}

// answerSlices plays the provider's slice controllers (liqotech/liqo,
// pkg/liqo-controller-manager/authentication/remoteresourceslice-controller,
// pkg/liqo-controller-manager/offloading/quota).
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

func (l *look) answerSlice(ctx context.Context, s *slice) error {
	t := l.tenantOf(s.Spec.ConsumerClusterID)
	if t == nil || t.Status.TenantNamespace != s.Namespace {
		return l.warn(ctx, refer(s), "TenantNotFound",
			fmt.Sprintf("there is no tenant for cluster %q in this namespace", s.Spec.ConsumerClusterID))
	}
	if err := l.limit(ctx, s); err != nil {
		return err
	}
	if t.Spec.TenantCondition != active {
		return nil // it negotiates nothing new
	}
	if err := examine(s.Spec.CSR, s.Name, s.Spec.ConsumerClusterID); err != nil {
		now := s.Status
		now.Conditions = with(now.Conditions, condition{
			Type: authenticationCondition, Status: denied, Reason: "ResourceSliceAuthenticationDenied", Message: err.Error(),
		})
		return errors.Join(l.warn(ctx, refer(s), "InvalidCSR", err.Error()), report(ctx, l.site, resourceSlices, s, now))
	}
	now := s.Status
	if s.Spec.Class == "" || s.Spec.Class == "default" {
		now.Resources = grant(s.Spec.Resources)
		now.Conditions = with(now.Conditions, condition{
			Type: resourcesCondition, Status: accepted, Reason: "ResourceSliceResourcesAccepted",
			Message: "granted as asked: nobody looked whether it is there",
		})
	}
	signed, err := l.certificate(ctx, s)
	if err == nil && len(signed) > 0 {
		now.AuthParams = &authParams{APIServer: l.config.Host, CA: l.config.CAData, SignedCRT: signed}
		now.Conditions = with(now.Conditions, condition{
			Type: authenticationCondition, Status: accepted, Reason: "ResourceSliceAuthenticationAccepted",
			Message: "the certificate is signed",
		})
	}
	return errors.Join(err, report(ctx, l.site, resourceSlices, s, now))
}

// certificate returns the signed certificate of a slice, PEM. It asks the
// cluster's own signer with a request of its own, and has none until that
// answers; where there is no signer, nothing says so.
func (l *look) certificate(ctx context.Context, s *slice) ([]byte, error) {
	if p := s.Status.AuthParams; p != nil && says(s.Status.Conditions, authenticationCondition) == accepted {
		return p.SignedCRT, nil
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
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
			},
		}, metav1.CreateOptions{})
	}
	if err != nil || len(asked.Status.Certificate) > 0 || len(asked.Status.Conditions) > 0 {
		if asked == nil {
			return nil, err
		}
		return asked.Status.Certificate, err
	}
	asked.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "IdentityManagerApproval",
		Message: "approved in the place of Liqo's controllers",
	}}
	_, err = requests.UpdateApproval(ctx, name, asked, metav1.UpdateOptions{})
	return nil, err
}

func quotaName(s *slice) string { return s.Name + "-" + s.Spec.ConsumerClusterID }

// limit keeps the Quota of a slice, which says how much the consumer may use
// and whether it may still use more.
func (l *look) limit(ctx context.Context, s *slice) error {
	if says(s.Status.Conditions, resourcesCondition) != accepted {
		return nil
	}
	cordoned := s.Annotations[cordon] == yes
	for i := range l.quotas {
		q := &l.quotas[i]
		if q.Name != quotaName(s) || q.Namespace != s.Namespace {
			continue
		}
		same := q.Spec.Cordoned != nil && *q.Spec.Cordoned == cordoned
		if same && equality.Semantic.DeepEqual(q.Spec.Resources, s.Status.Resources) {
			return nil
		}
		return l.patch(ctx, quotas, q, []map[string]any{
			{"op": "add", "path": "/spec/cordoned", "value": cordoned},
			{"op": "add", "path": "/spec/resources", "value": s.Status.Resources},
		})
	}
	return create(ctx, l.site, quotas, "Quota", quota{
		ObjectMeta: metav1.ObjectMeta{
			Name: quotaName(s), Namespace: s.Namespace, OwnerReferences: owned(s), Annotations: mark(),
			Labels: map[string]string{remoteClusterID: s.Spec.ConsumerClusterID, resourceSliceName: s.Name},
		},
		Spec: quotaSpec{
			User:      subject(s.Name, s.Spec.ConsumerClusterID).CommonName,
			Resources: s.Status.Resources, Cordoned: &cordoned, LimitsEnforcement: "None",
		},
	})
}

// sweep takes away the Quotas and requests of slices that are gone.
func (l *look) sweep(ctx context.Context) error {
	var all []error
	for i := range l.quotas {
		if q := &l.quotas[i]; q.Labels[resourceSliceName] != "" && l.sliceOf(q.ObjectMeta) == nil {
			all = append(all, l.remove(ctx, quotas, q))
		}
	}
	requests := l.client.CertificatesV1().CertificateSigningRequests()
	asked, err := standin.Listed[certificatesv1.CertificateSigningRequest](ctx, l.seen, kubeRequests, "", resourceSliceName)
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

// sliceFrom tells whether a consumer still has a slice here.
func (l *look) sliceFrom(name, consumer string) bool {
	for _, s := range l.slices {
		if s.Name == name && l.replicatedFrom(s.ObjectMeta, consumer) {
			return true
		}
	}
	return false
}
