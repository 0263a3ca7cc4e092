package scenario

import (
	"context"
	"errors"
	"sync/atomic"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"carrick/cluster/sandbox/standin"
)

// approver fakes an admin who approves the virtual kubelet's CertificateSigningRequests. Upstream's documentation
// requires this (interlink-hq/interLink f6321757, docs/docs/Developers.md, "CSR approval"), because no Kubernetes
// controller approves these requests.
type approver struct {
	client kubernetes.Interface
	end    func()
	away   atomic.Bool
}

func startApprover(ctx context.Context, side *Side) (*approver, error) {
	client, err := kubernetes.NewForConfig(side.Config)
	if err != nil {
		return nil, err
	}
	a := &approver{client: client}
	a.end, err = standin.LoopOnChange(
		ctx, side.Config, a.Look, certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"),
	)
	return a, err
}

// Look approves all pending requests.
func (a *approver) Look(ctx context.Context) error {
	if a.away.Load() {
		return nil
	}
	requests := a.client.CertificatesV1().CertificateSigningRequests()
	all, err := requests.List(
		ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName},
	)
	if err != nil {
		return err
	}
	var faults []error
	for i := range all.Items {
		if r := &all.Items[i]; len(r.Status.Conditions) == 0 {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
				Reason: "KubectlApprove", Message: "This CSR was approved by kubectl certificate approve.",
			}}
			_, err := requests.UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{FieldManager: "kubectl"})
			if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // already approved or deleted
				faults = append(faults, err)
			}
		}
	}
	return errors.Join(faults...)
}
