package liqo

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// keptCredential returns the plan for a consumer with an unmanaged credential. carrick keeps the credential and creates
// nothing.
func keptCredential(consumer steps.Facts) steps.Change {
	name := consumer.FieldText("control-plane", "name")
	return steps.Change{Items: []steps.Item{{
		Verb: steps.Leave, What: "Secret " + name,
		Note: "carrick keeps this credential because it did not create it; to have carrick create one, delete the Secret",
	}}}
}

// credentialKey creates the consumer's key, unless an unmanaged credential is in use.
type credentialKey struct{ action.Mint }

// OthersStay marks credentialKey as a Doer that can keep an unmanaged credential.
func (credentialKey) OthersStay() {}

// Plan shows the Secret with the new key, or that carrick keeps an unmanaged credential.
func (k credentialKey) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	if foreign(e.Own) {
		return keptCredential(e.Own), nil
	}
	return k.Mint.Plan(ctx, e)
}

// Do creates the key, unless an unmanaged credential is in use.
func (k credentialKey) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if foreign(e.Own) {
		return nil
	}
	return k.Mint.Do(ctx, e, say)
}

// certificateRequest creates the consumer's CertificateSigningRequest in the provider's cluster
// and approves it, unless the consumer already has a credential.
type certificateRequest struct{ action.Manifest }

// signer signs client certificates for the API server.
const signer = "kubernetes.io/kube-apiserver-client"

// asked describes the consumer's certificate request and the corresponding CertificateSigningRequest in the provider's
// cluster.
type asked struct {
	csr      string // PEM
	request  *x509.CertificateRequest
	name     string
	what     string // "CertificateSigningRequest NAME"
	approved bool   // the existing CertificateSigningRequest is approved
	refused  error  // why carrick refuses to approve the request
}

func (r certificateRequest) asked(ctx context.Context, e steps.Env) (asked, error) {
	name, err := requestName(ctx, e)
	if err != nil {
		return asked{}, err
	}
	out := asked{name: name.(string), what: "CertificateSigningRequest " + name.(string)}
	if out.csr, err = e.Peer.Text("csr"); err != nil {
		return asked{}, err
	}
	id, err := peerID(e)
	if err != nil {
		return asked{}, err
	}
	if out.request, out.refused = sound(out.csr, id); out.refused != nil {
		return out, nil
	}
	key := &unstructured.Unstructured{}
	key.SetAPIVersion(check.SigningRequests.GroupVersion().String())
	key.SetKind("CertificateSigningRequest")
	key.SetName(out.name)
	live, err := e.Cluster.Fetch(ctx, key)
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return asked{}, fmt.Errorf("read %s: %w", out.what, err)
	}
	if out.approved = approval(live) == "Approved"; out.approved {
		return out, nil
	}
	var typed certificatesv1.CertificateSigningRequest
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &typed); err != nil {
		return asked{}, fmt.Errorf("read %s: %w", out.what, err)
	}
	if err := compareRequest(out.csr)(typed.Spec); err != nil {
		remove := e.Kubectl() + " delete certificatesigningrequests.certificates.k8s.io " + out.name
		out.refused = fmt.Errorf("%w; delete the CertificateSigningRequest, then apply again: %s", err, remove)
	}
	return out, nil
}

// Plan shows the CertificateSigningRequest and its approval. If carrick refuses to approve the request, Plan lists the
// approval as refused rather than unchanged, because the step cannot pass without the approval.
func (r certificateRequest) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	switch {
	case foreign(e.Peer):
		return keptCredential(e.Peer), nil
	case stored(e.Peer):
		return steps.Change{Items: []steps.Item{{
			Verb: steps.Leave, What: "CertificateSigningRequest", Note: "the consumer already has its certificate",
		}}}, nil
	}
	a, err := r.asked(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	approve := steps.Item{Verb: steps.Run, What: "approve " + a.what, Hash: steps.HashOf(a.csr)}
	if a.refused != nil {
		approve.Note, approve.Refused = a.refused.Error(), true
		return steps.Change{Items: []steps.Item{approve}}, nil
	}
	c, err := r.Manifest.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	c.Permissions = append(c.Permissions,
		permission.Rule{
			Verb: "update", Group: check.SigningRequests.Group, Resource: check.SigningRequests.Resource,
			Subresource: "approval",
		},
		permission.Rule{Verb: "approve", Group: check.SigningRequests.Group, Resource: "signers", Name: signer})
	if !a.approved {
		approve.Note = requestWords(a.request)
		c.Items = append(c.Items, approve)
	}
	return c, nil
}

// requestWords describes a certificate request to the admin who approves it. The fingerprint of the request's public
// key has the format of ssh-keygen -l.
func requestWords(request *x509.CertificateRequest) string {
	var uses []string
	for _, u := range usages {
		uses = append(uses, string(u))
	}
	fingerprint := sha256.Sum256(request.RawSubjectPublicKeyInfo)
	return fmt.Sprintf("user %s, group %s; usages %s; no alternative names; valid for at most %d days; %s key SHA256:%s",
		request.Subject.CommonName, strings.Join(request.Subject.Organization, ", "), strings.Join(uses, ", "),
		certificateLife/(24*time.Hour), request.PublicKeyAlgorithm, base64.RawStdEncoding.EncodeToString(fingerprint[:]))
}

// Do creates the CertificateSigningRequest, then approves it.
func (r certificateRequest) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if foreign(e.Peer) || stored(e.Peer) {
		return nil
	}
	a, err := r.asked(ctx, e)
	if err != nil {
		return err
	}
	if a.refused != nil {
		return fmt.Errorf("approve %s: %w", a.what, a.refused)
	}
	if err := r.Manifest.Do(ctx, e, say); err != nil || a.approved {
		return err
	}
	why := "approved by an admin of the provider with carrick, for link " + e.Link
	if err := e.Cluster.Approve(ctx, a.name, compareRequest(a.csr), "LiqoPeering", why); err != nil {
		return err
	}
	say.Did(steps.Run, "approve "+a.what, steps.HashOf(a.csr))
	return nil
}

// certificateLife must match expirationSeconds in certificate-request.yaml. The cluster's signer can issue a
// certificate with a shorter lifetime (kube-controller-manager --cluster-signing-duration).
const certificateLife = 365 * 24 * time.Hour

// usages must match the key usages in certificate-request.yaml.
var usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}

// compareRequest returns a function that compares the spec of a CertificateSigningRequest with the spec that carrick
// creates for csr (PEM), and returns an error if they differ. They can differ even after carrick has applied the
// manifest: another user can create a CertificateSigningRequest with the same name first, and the API server ignores
// changes to the spec (kubernetes/kubernetes: pkg/registry/certificates/certificates/strategy.go).
func compareRequest(csr string) func(certificatesv1.CertificateSigningRequestSpec) error {
	return func(got certificatesv1.CertificateSigningRequestSpec) error {
		switch {
		case string(got.Request) != csr:
			return errors.New("it does not contain the consumer's certificate request")
		case got.SignerName != signer:
			return fmt.Errorf("its signer is %s, not %s", got.SignerName, signer)
		case !sets.New(got.Usages...).Equal(sets.New(usages...)):
			return fmt.Errorf("its usages are %v, not %v", got.Usages, usages)
		case got.ExpirationSeconds == nil:
			return errors.New("it does not limit the certificate's lifetime (expirationSeconds)")
		case time.Duration(*got.ExpirationSeconds)*time.Second > certificateLife:
			return fmt.Errorf("it requests a certificate valid for more than %d days", certificateLife/(24*time.Hour))
		}
		return nil
	}
}

// manualApproval returns a command that approves the CertificateSigningRequest only if it contains the consumer's
// certificate request.
func manualApproval(e steps.Env, a asked) string {
	digest := sha256.Sum256([]byte(base64.StdEncoding.EncodeToString([]byte(a.csr))))
	return fmt.Sprintf(
		"%[1]s get certificatesigningrequests.certificates.k8s.io %[2]s -o jsonpath='{.spec.request}' | sha256sum | grep "+
			"-q ^%[3]x && "+
			"%[1]s certificate approve %[2]s", e.Kubectl(), a.name, digest,
	)
}

// approval returns the state of a CertificateSigningRequest: "Approved", "Denied", "Failed", or "" if it is undecided.
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

// Export returns the manifest and the command that approves the CertificateSigningRequest manually.
func (r certificateRequest) Export(ctx context.Context, e steps.Env) ([]action.Exported, error) {
	out, err := r.Manifest.Export(ctx, e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return []action.Exported{{Left: "the consumer's certificate request: " + absent.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	a, err := r.asked(ctx, e)
	if err != nil {
		return nil, err
	}
	if a.refused != nil {
		return []action.Exported{{Left: a.what + ": " + a.refused.Error()}}, nil
	}
	return append(out, action.Exported{Hand: manualApproval(e, a)}), nil
}
