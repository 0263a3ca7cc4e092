package liqo

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"carrick/cluster"
	"carrick/steps"
)

// standsAlready is the plan where a credential of somebody else's is in use.
func standsAlready(consumer steps.Facts) steps.Change {
	name, _ := standing(consumer, "control-plane", "name").(string)
	return steps.Change{Items: []steps.Item{{
		Verb: steps.Leave, What: "Secret " + name, Note: "a credential that somebody else made is in use; carrick makes one when that Secret is gone",
	}}}
}

// credentialKey makes a key unless another credential is in use.
type credentialKey struct{ steps.Mint }

// Plan leaves a credential of somebody else's.
func (k credentialKey) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	if foreign(e.Own) {
		return standsAlready(e.Own), nil
	}
	return k.Mint.Plan(ctx, e)
}

// Do makes nothing beside a credential of somebody else's.
func (k credentialKey) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if foreign(e.Own) {
		return nil
	}
	return k.Mint.Do(ctx, e, say)
}

// certificateRequest asks the provider's cluster for the consumer's certificate
// and approves that, unless the consumer holds one already.
type certificateRequest struct{ steps.Manifest }

// signer is who signs client certificates in Kubernetes.
const signer = "kubernetes.io/kube-apiserver-client"

// Plan shows the request and its approval.
func (r certificateRequest) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	switch {
	case foreign(e.Peer):
		return standsAlready(e.Peer), nil
	case stored(e.Peer):
		return steps.Change{Items: []steps.Item{{Verb: steps.Leave, What: "CertificateSigningRequest", Note: "the consumer holds its certificate already"}}}, nil
	}
	name, err := requestName(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	what := "CertificateSigningRequest " + name.(string)
	csr, request, err := soundRequest(e)
	if err != nil {
		refused := steps.Item{Verb: steps.Leave, What: what, Note: "carrick does not approve it: " + err.Error()}
		return steps.Change{Items: []steps.Item{refused}}, nil
	}
	c, err := r.Manifest.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	c.Rights = append(c.Rights,
		cluster.Right{Verb: "update", Group: signingRequests.Group, Resource: signingRequests.Resource, Subresource: "approval"},
		cluster.Right{Verb: "approve", Group: signingRequests.Group, Resource: "signers", Name: signer})
	approved, err := isApproved(ctx, e, name.(string))
	if err == nil && !approved {
		c.Items = append(c.Items, steps.Item{Verb: steps.Run, What: "approve " + what, Note: decoded(request), Hash: csr})
	}
	return c, err
}

// decoded is a request as its approver reads it.
func decoded(request *x509.CertificateRequest) string {
	return fmt.Sprintf("user %s, groups %v, no alternative names, usages %v, valid for at most %d days, key %s SHA256:%x",
		request.Subject.CommonName, request.Subject.Organization, usages, certificateLife/(24*time.Hour),
		request.PublicKeyAlgorithm, sha256.Sum256(request.RawSubjectPublicKeyInfo))
}

// Do creates the CertificateSigningRequest, then approves it.
func (r certificateRequest) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if foreign(e.Peer) || stored(e.Peer) {
		return nil
	}
	name, err := requestName(ctx, e)
	if err != nil {
		return err
	}
	csr, _, err := soundRequest(e)
	if err != nil {
		return err
	}
	if err := r.Manifest.Do(ctx, e, say); err != nil {
		return err
	}
	if approved, err := isApproved(ctx, e, name.(string)); err != nil || approved {
		return err
	}
	why := "approved by an admin of the provider with carrick, for link " + e.Link
	if err := e.Cluster.Approve(ctx, name.(string), expected(csr), "LiqoPeering", why); err != nil {
		return err
	}
	say.Did(steps.Run, "approve CertificateSigningRequest "+name.(string), csr)
	return nil
}

// certificateLife is the lifetime that certificate-request.yaml asks for. The cluster's signer may shorten it
// (kube-controller-manager --cluster-signing-duration).
const certificateLife = 365 * 24 * time.Hour

// usages are those that certificate-request.yaml asks for.
var usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}

// expected reports how a CertificateSigningRequest differs from the one that carrick creates for a request in PEM.
// Creating does not ensure that: whoever may create CertificateSigningRequests can take the name first, and the API
// server ignores changes of the spec (kubernetes/kubernetes: pkg/registry/certificates/certificates/strategy.go).
func expected(csr string) func(certificatesv1.CertificateSigningRequestSpec) error {
	return func(got certificatesv1.CertificateSigningRequestSpec) error {
		switch {
		case string(got.Request) != csr:
			return errors.New("it holds another request than the consumer's")
		case got.SignerName != signer:
			return fmt.Errorf("it is for the signer %s, not %s", got.SignerName, signer)
		case !sets.New(got.Usages...).Equal(sets.New(usages...)):
			return fmt.Errorf("its usages are %v, not %v", got.Usages, usages)
		case got.ExpirationSeconds == nil || time.Duration(*got.ExpirationSeconds)*time.Second > certificateLife:
			return fmt.Errorf("it asks for a certificate of more than %d days", certificateLife/(24*time.Hour))
		}
		return nil
	}
}

// isApproved tells whether the request is there and was approved.
func isApproved(ctx context.Context, e steps.Env, name string) (bool, error) {
	csr := &unstructured.Unstructured{}
	csr.SetAPIVersion(signingRequests.GroupVersion().String())
	csr.SetKind("CertificateSigningRequest")
	csr.SetName(name)
	live, err := e.Cluster.Fetch(ctx, csr)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read CertificateSigningRequest %s: %w", name, err)
	}
	return approval(live) == "Approved", nil
}

// approval is what became of a request: "Approved", "Denied", "Failed" or "".
func approval(csr *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(csr.Object, "status", "conditions")
	out := ""
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if kind, _ := m["type"].(string); kind != "Approved" || out == "" {
			out = kind
		}
	}
	return out
}

// Export says what to do in place of the approval.
func (r certificateRequest) Export(ctx context.Context, e steps.Env) ([]steps.Exported, error) {
	out, err := r.Manifest.Export(ctx, e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return []steps.Exported{{Left: "the consumer's certificate request: " + absent.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	if _, _, err := soundRequest(e); err != nil {
		return []steps.Exported{{Left: err.Error()}}, nil
	}
	name, err := requestName(ctx, e)
	if err != nil {
		return nil, err
	}
	return append(out, steps.Exported{Hand: e.Kubectl() + " certificate approve " + name.(string)}), nil
}
