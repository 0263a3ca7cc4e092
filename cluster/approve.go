package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/clean"
)

var signingRequests = schema.GroupVersionResource{
	Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests",
}

// ErrDenied means that a CertificateSigningRequest has been denied. A denial cannot be undone.
var ErrDenied = errors.New("the request was denied")

// Approve approves the named CertificateSigningRequest. reason is in CamelCase. expected checks the spec and returns an
// error if the request must not be approved. If the object changes after this check, the API server rejects the update.
// Approve leaves an approved request unchanged, and returns ErrDenied for a denied request. It requires the permissions
// to update certificatesigningrequests/approval and to approve for the signer.
func (c *Cluster) Approve(
	ctx context.Context, name string, expected func(certificatesv1.CertificateSigningRequestSpec) error,
	reason, message string,
) error {
	doing := "approve CertificateSigningRequest " + clean.Text(name)
	at := location{gvr: signingRequests, name: name}
	live, err := c.send(ctx, doing, request{verb: http.MethodGet, at: at})
	if err != nil {
		return err
	}
	var csr certificatesv1.CertificateSigningRequest
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &csr); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := expected(csr.Spec); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	has := func(kind certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(
			csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind },
		)
	}
	switch {
	case has(certificatesv1.CertificateDenied):
		return fmt.Errorf("%s: %w", doing, ErrDenied)
	case has(certificatesv1.CertificateApproved):
		return nil
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastUpdateTime: metav1.Now(),
	})
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&csr)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	body, err := encode(&unstructured.Unstructured{Object: fields})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	at.subresource = "approval"
	_, err = c.send(ctx, doing, request{verb: http.MethodPut, at: at, body: body, contentType: jsonType})
	return err
}
