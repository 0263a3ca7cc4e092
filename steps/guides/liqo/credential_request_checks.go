package liqo

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/steps"
	"carrick/steps/check"
)

func requestSound(_ context.Context, e steps.Env) steps.Result {
	if foreign(e.Peer) {
		return foreignCredential(e.Peer)
	}
	csr, err := e.Peer.Text("csr")
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Waits(time.Time{}, "%s", absent.Why)
	}
	if err != nil {
		return steps.Errored(err)
	}
	theirs, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	own, err := e.Own.Text("cluster-id")
	if err != nil {
		return steps.Errored(err)
	}
	return judgeRequest(csr, theirs, newKey(e.PeerKubectl(), peerNamespace(e), own, e))
}

// newKey returns the command that deletes the consumer's key, so that carrick creates another key and certificate.
// kubectl and namespace are the consumer's kubectl command and tenant namespace. id is the provider's cluster id.
func newKey(kubectl, namespace, id string, e steps.Env) string {
	return kubectl + " -n " + namespace + " delete secret " + usualCredential + id + "    # then carrick apply " +
		e.LinkFile()
}

// foreignCredential returns the result of a check that does not apply because the consumer uses an unmanaged
// credential.
func foreignCredential(consumer steps.Facts) steps.Result {
	name := consumer.FieldText("control-plane", "name")
	return steps.Skipped("the consumer uses a credential that carrick did not create (Secret %s)", name)
}

// judgeRequest returns the verdict on csr, a certificate request in PEM. id is the cluster id of the consumer that
// created the request.
func judgeRequest(csr, id, fix string) steps.Result {
	request, err := sound(csr, id)
	if err != nil {
		return steps.Failed(err.Error(), fix)
	}
	return steps.Passed("user %s, group %s", request.Subject.CommonName, check.OrNone(request.Subject.Organization))
}

// sound parses a certificate request in PEM. It returns an error if the request differs from the request that carrick
// creates. id is the consumer's cluster id.
func sound(csr, id string) (*x509.CertificateRequest, error) {
	request, err := parseRequest(csr)
	if err != nil {
		return nil, fmt.Errorf("the consumer's certificate request: %w", err)
	}
	if bad := unexpected(request, id); len(bad) > 0 {
		const what = "the consumer's certificate request differs from the request that carrick creates: "
		return nil, errors.New(what + strings.Join(bad, "; "))
	}
	return request, nil
}

// unexpected lists the differences between a request and the request that newCredentialKey creates. id is the
// consumer's cluster id. A denylist of names and groups would not be enough, because a cluster can bind any name or
// group to cluster-admin, as kubeadm does with the group kubeadm:cluster-admins. The signer copies the subject and the
// alternative names unchanged.
func unexpected(request *x509.CertificateRequest, id string) []string {
	out := unexpectedSubject(request.Subject, commonName(id, request.RawSubjectPublicKeyInfo))
	if len(request.Extensions) > 0 {
		names := slices.Concat(request.DNSNames, request.EmailAddresses)
		for _, ip := range request.IPAddresses {
			names = append(names, ip.String())
		}
		for _, uri := range request.URIs {
			names = append(names, uri.String())
		}
		what := "X.509 extensions are requested"
		if len(names) > 0 {
			what = "unexpected subject alternative names " + check.OrNone(names)
		}
		out = append(out, what)
	}
	if key, ok := request.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		out = append(out, "key type is "+request.PublicKeyAlgorithm.String()+", not ECDSA P-256")
	}
	return out
}

// unexpectedSubject lists the differences between a subject and the expected subject. The expected subject has only the
// given common name and the organization liqo.io.
func unexpectedSubject(subject pkix.Name, name string) (out []string) {
	if subject.CommonName != name {
		out = append(out, fmt.Sprintf("common name is %q, not %q", subject.CommonName, name))
	}
	if !slices.Equal(subject.Organization, []string{liqoGroup}) {
		out = append(
			out, fmt.Sprintf("organizations are %s, not only %s", check.OrNone(subject.Organization), liqoGroup),
		)
	} else if len(subject.Names) != 2 {
		out = append(out, "subject has more than a common name and an organization")
	}
	return out
}

// badSubject lists the problems with the subject of a certificate that carrick did not request. id is the consumer's
// cluster id.
func badSubject(name string, groups []string, id string) []string {
	var out []string
	switch {
	case name == "":
		out = append(out, "no common name")
	case strings.HasPrefix(name, "system:"):
		out = append(out, "the name "+name+", which is reserved for Kubernetes")
	}
	for _, g := range groups {
		switch {
		case strings.HasPrefix(g, "system:"):
			out = append(out, "the group "+g+", which is reserved for Kubernetes")
		case g == "kubeadm:cluster-admins":
			out = append(out, "the group "+g+", which kubeadm binds to cluster-admin")
		case g == id:
			out = append(out, "the group "+g+", which has the permissions of Liqo's virtual kubelets")
		}
	}
	return out
}

func certificateIssued(ctx context.Context, e steps.Env) steps.Result {
	switch {
	case foreign(e.Peer):
		return foreignCredential(e.Peer)
	case stored(e.Peer):
		return steps.Skipped("the consumer already has its certificate")
	}
	name, err := requestName(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	csr, err := e.Cluster.Get(ctx, check.SigningRequests, "", name.(string))
	if apierrors.IsNotFound(err) {
		return steps.Undone(fmt.Sprintf("CertificateSigningRequest %s does not exist", name))
	}
	if err != nil {
		return steps.Errored(err)
	}
	what := "CertificateSigningRequest " + csr.GetName()
	wants, err := e.Peer.Text("csr")
	if err != nil {
		return steps.Errored(err)
	}
	state, reason, since := decision(csr)
	recreate := e.Kubectl() + " delete certificatesigningrequests.certificates.k8s.io " + name.(string) + "    # then " +
		e.ApplyStep("credentials")
	switch {
	case text(csr, "spec", "signerName") != signer:
		return steps.Failed(
			fmt.Sprintf("%s is for signer %q, not %s", what, text(csr, "spec", "signerName"), signer), recreate,
		)
	case text(csr, "spec", "request") != base64.StdEncoding.EncodeToString([]byte(wants)):
		return steps.Failed(what+" does not contain the consumer's request", recreate)
	case state == "Denied" || state == "Failed":
		return steps.Failed(fmt.Sprintf("%s is %s: %s", what, strings.ToLower(state), reason), recreate)
	case state == "":
		return steps.Failed(what+" is not approved yet", e.ApplyStep("credentials"))
	case text(csr, "status", "certificate") == "":
		return steps.Waits(since, "%s is approved but not signed", what).Or(noSigner)
	}
	cert, err := e.Own.Text("certificate")
	if err != nil {
		return steps.Errored(err)
	}
	c := leaf([]byte(cert))
	if c == nil {
		return steps.Failed(what+" has no readable certificate", recreate)
	}
	return steps.Passed("certificate for %s, valid until %s", c.Subject.CommonName, c.NotAfter.Format(time.DateOnly))
}

// forClients reports whether a certificate allows client authentication. A certificate without extended key usages
// allows it, too.
func forClients(c *x509.Certificate) bool {
	return len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) == 0 ||
		slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny)
}
