package liqo

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	"carrick/cluster/clean"
	"carrick/cluster/clustertest/hostile"
)

// The provider's admin approves a certificate request that the consumer wrote. For any request, the verdict must be
// safe to display, and only a request like carrick's own may pass.
func FuzzRequests(f *testing.F) {
	key := fixedKey("a")
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		f.Fatal(err)
	}
	ask := func(name string, groups ...string) string {
		der, err := x509.CreateCertificateRequest(
			rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: groups}}, key,
		)
		if err != nil {
			f.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	}
	sound := ask(commonName("milan", public), liqoGroup)
	f.Add(ask("system:kube-controller-manager"), "milan")
	f.Add(ask("x", "system:masters", "\x1b[2J"), "milan")
	f.Add(sound, "milan")
	f.Add(sound, "rome")
	f.Add("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n", "milan")
	f.Add(strings.Replace(sound, "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST", 2), "milan")
	f.Add(hostile.Texts["clears the screen"], hostile.Texts["turns the direction"])
	f.Fuzz(func(t *testing.T, csr, id string) {
		r := judgeRequest(csr, id, "")
		if bad := hostile.Unfit(clean.Text(r.Found)); bad != "" {
			t.Error(bad)
		}
		if !r.Status.Holds() {
			return
		}
		block, _ := pem.Decode([]byte(csr))
		request, err := parseRequest(csr)
		if err != nil || block == nil {
			t.Fatalf("passed, although: %v", err)
		}
		if bad := unexpected(request, id); len(bad) > 0 {
			t.Errorf("passed, although %v", bad)
		}
	})
}

// Server addresses come from kubeconfigs that other people wrote.
func FuzzServerAddresses(f *testing.F) {
	for _, s := range []string{
		"https://rome.example.org:6443", "https://127.0.0.1:1", "https://[::1%25eth0]:1", "https://0x7f.1",
		"https://kubernetes.default.svc", "https://[fe80::1]", "::", "https://169.254.169.254", "https://%zz",
	} {
		f.Add(s, "https://10.0.0.1:6443")
	}
	f.Fuzz(func(t *testing.T, server, own string) {
		r := judgeServerAddress(server, own, "fix")
		if bad := hostile.Unfit(clean.Text(r.Found)); bad != "" || r.Found == "" {
			t.Errorf("%s: %q", bad, r.Found)
		}
		if server == own && r.Status.Holds() {
			t.Errorf("the consumer's own server %q is taken for the provider's", server)
		}
	})
}
