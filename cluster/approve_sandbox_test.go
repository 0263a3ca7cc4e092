package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clustertest"
)

// signingRequest creates a CertificateSigningRequest for a client certificate.
func signingRequest(t *testing.T, box *clustertest.Sandbox, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(
		rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key,
	)
	if err != nil {
		t.Fatal(err)
	}
	body := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	box.Run(
		t, clustertest.Remote,
		`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: `+name+`},
spec: {request: `+body+`, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}}`, "create", "-f",
		"-",
	)
	box.Cleanup(t, clustertest.Remote, "delete", "csr", name)
}

func TestApprove(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	c := box.Open(t, clustertest.Remote, cluster.Options{})
	signingRequest(t, box, "approve-me")
	other := errors.New("another request")
	refuses := func(certificatesv1.CertificateSigningRequestSpec) error { return other }
	if err := c.Approve(t.Context(), "approve-me", refuses, "Test", "because"); !errors.Is(err, other) {
		t.Errorf("of another request: %v", err)
	}
	expected := func(spec certificatesv1.CertificateSigningRequestSpec) error {
		if spec.SignerName != "kubernetes.io/kube-apiserver-client" ||
			!strings.Contains(string(spec.Request), "CERTIFICATE REQUEST") {
			return other
		}
		return nil
	}
	for range 2 { // the second time there is nothing to do
		if err := c.Approve(t.Context(), "approve-me", expected, "Test", "because"); err != nil {
			t.Fatal(err)
		}
	}
	box.Run(t, clustertest.Remote, "", "wait", "--for=jsonpath={.status.certificate}", "--timeout=300s", "csr/approve-me")
	got := box.Run(
		t, clustertest.Remote, "", "get", "csr", "approve-me", "-o",
		"jsonpath={.status.conditions[*].type} {.status.conditions[*].reason} {.status.conditions[*].message}",
	)
	if got != "Approved Test because" {
		t.Errorf("conditions: %s", got)
	}

	signingRequest(t, box, "deny-me")
	box.Run(t, clustertest.Remote, "", "certificate", "deny", "deny-me")
	if err := c.Approve(t.Context(), "deny-me", expected, "Test", "because"); !errors.Is(err, cluster.ErrDenied) ||
		!strings.Contains(err.Error(), "deny-me") {
		t.Errorf("of one that was denied: %v", err)
	}
	if err := c.Approve(t.Context(), "nobody", expected, "Test", "because"); !apierrors.IsNotFound(err) {
		t.Errorf("of one that is not there: %v", err)
	}
}
