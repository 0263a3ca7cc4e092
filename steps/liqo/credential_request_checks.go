package liqo

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/steps"
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
		return steps.Unseen(err)
	}
	theirs, err := peerID(e)
	if err != nil {
		return steps.Unseen(err)
	}
	own, err := e.Own.Text("cluster-id")
	if err != nil {
		return steps.Unseen(err)
	}
	return judgeRequest(csr, theirs, newKey(e.PeerKubectl(), peerNamespace(e), own, e))
}

// newKey is how the consumer gets another key, and a certificate for that: its
// kubectl, its tenant namespace and the provider's cluster id.
func newKey(kubectl, namespace, id string, e steps.Env) string {
	return kubectl + " -n " + namespace + " delete secret " + usualCredential + id + "    # then carrick apply " + e.LinkFile()
}

// foreignCredential is the verdict of checks of carrick's own credential where
// somebody else's is in use.
func foreignCredential(consumer steps.Facts) steps.Result {
	name, _ := standing(consumer, "control-plane", "name").(string)
	return steps.Skipped("the consumer uses a credential that somebody else made (Secret %s)", name)
}

// judgeRequest says whether a request of the consumer with that cluster id may be
// approved.
func judgeRequest(csr, id, fix string) steps.Result {
	request, err := parseRequest(csr)
	if err != nil {
		return steps.Failed("the request: "+err.Error(), fix)
	}
	if bad := badSubject(request.Subject.CommonName, request.Subject.Organization, id); len(bad) > 0 {
		return steps.Failed("it asks for "+strings.Join(bad, "; "), fix)
	}
	if key, ok := request.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < 2048 {
		return steps.Failed(fmt.Sprintf("its key is RSA of %d bits: API servers want 2048 or more", key.N.BitLen()), fix)
	}
	if name := request.Subject.CommonName; name != commonName(id, request.RawSubjectPublicKeyInfo) {
		return steps.Warned(fmt.Sprintf("it asks for the name %s, which carrick did not make of its key: whatever that name may do already, the consumer may, too", name), fix)
	}
	return steps.Passed("%s, of %s", request.Subject.CommonName, listed(request.Subject.Organization))
}

// badSubject says what must not stand in the subject of a consumer's certificate.
func badSubject(name string, groups []string, id string) []string {
	var out []string
	switch {
	case name == "":
		out = append(out, "no name at all")
	case len(name) > 64:
		out = append(out, "a name of more than 64 characters")
	case strings.HasPrefix(name, "system:"):
		out = append(out, "the name "+name+", which is one of Kubernetes' own")
	}
	for _, g := range groups {
		switch {
		case strings.HasPrefix(g, "system:"):
			out = append(out, "the group "+g+", which is one of Kubernetes' own")
		case g == id:
			out = append(out, "the group "+g+", which has the rights of Liqo's virtual kubelets")
		}
	}
	return out
}

func certificateIssued(ctx context.Context, e steps.Env) steps.Result {
	switch {
	case foreign(e.Peer):
		return foreignCredential(e.Peer)
	case stored(e.Peer):
		return steps.Skipped("the consumer holds its certificate already")
	}
	name, err := requestName(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	csr, err := e.Cluster.Get(ctx, signingRequests, "", name.(string))
	if apierrors.IsNotFound(err) {
		return steps.Failed(fmt.Sprintf("it is not asked for: there is no CertificateSigningRequest %s", name), "")
	}
	if err != nil {
		return steps.Unseen(err)
	}
	what := "CertificateSigningRequest " + csr.GetName()
	state, reason, since := decision(csr)
	anew := e.Kubectl() + " delete certificatesigningrequests.certificates.k8s.io " + name.(string) + "    # then " + mends(e, "credentials")
	switch {
	case text(csr, "spec", "signerName") != signer:
		return steps.Failed(fmt.Sprintf("%s is for signer %q, not %s", what, text(csr, "spec", "signerName"), signer), anew)
	case state == "Denied" || state == "Failed":
		return steps.Failed(fmt.Sprintf("%s: %s: %s", what, strings.ToLower(state), reason), anew)
	case state == "":
		return steps.Failed(what+" waits for somebody to approve it", e.Kubectl()+" certificate approve "+name.(string)+"    # or "+mends(e, "credentials"))
	case text(csr, "status", "certificate") == "":
		return steps.Waits(since, "%s is approved and not signed", what).Or(noSigner)
	}
	cert, err := e.Own.Text("certificate")
	if err != nil {
		return steps.Unseen(err)
	}
	c := leaf([]byte(cert))
	if c == nil {
		return steps.Failed(what+" holds no certificate that can be read", anew)
	}
	return steps.Passed("for %s, until %s", c.Subject.CommonName, c.NotAfter.Format(time.DateOnly))
}

// forClients tells whether a certificate is for clients.
func forClients(c *x509.Certificate) bool {
	return len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) == 0 ||
		slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny)
}
