package certificate_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"carrick/cluster/certificate"
	"carrick/cluster/masked"
)

func parsed(t *testing.T, p certificate.Pair) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(p.Cert)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An issued certificate works for a server. Only its CA trusts it, and it is valid only for its names.
func TestIssuedServesByItsNames(t *testing.T) {
	ca, err := certificate.NewAuthority("the CA", 10)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := certificate.NewAuthority("the CA", 10)
	leaf, err := certificate.Issue(ca, []string{"127.0.0.1", "api.example.org", "2001:db8::1"}, 90)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(leaf.Cert, []byte(leaf.Key.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }),
	)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	defer s.Close()
	for _, x := range []struct {
		ca   []byte
		name string
		ok   bool
	}{
		{ca.Cert, "127.0.0.1", true},
		{ca.Cert, "api.example.org", true},
		{ca.Cert, "2001:db8::1", true},
		{ca.Cert, "other.example.org", false},
		{ca.Cert, "127.0.0.2", false},
		{other.Cert, "127.0.0.1", false},
	} {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(x.ca)
		c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: x.name}}}
		r, err := c.Get(s.URL)
		if err == nil {
			_ = r.Body.Close()
		}
		if (err == nil) != x.ok {
			t.Errorf("by the name %s: %v", x.name, err)
		}
	}
}

func TestLivesAndUses(t *testing.T) {
	ca, err := certificate.NewAuthority("the CA", 1)
	if err != nil {
		t.Fatal(err)
	}
	c := parsed(t, ca)
	if !c.IsCA || !c.MaxPathLenZero || c.Subject.CommonName != "the CA" || time.Until(c.NotAfter) > 366*24*time.Hour {
		t.Errorf("the CA is %+v", c.Subject)
	}
	leaf, err := certificate.Issue(ca, []string{"10.0.0.1"}, 90)
	if err != nil {
		t.Fatal(err)
	}
	l := parsed(t, leaf)
	if l.IsCA || len(l.IPAddresses) != 1 || len(l.DNSNames) != 0 ||
		time.Until(l.NotAfter).Round(24*time.Hour) != 90*24*time.Hour {
		t.Errorf("the certificate is for %v %v until %s", l.DNSNames, l.IPAddresses, l.NotAfter)
	}
	if long, err := certificate.Issue(ca, []string{"a.example.org"}, 4000); err != nil ||
		!parsed(t, long).NotAfter.Equal(c.NotAfter) {
		t.Errorf("a certificate outlives its CA: %v", err)
	}
	if _, err := certificate.Issue(ca, []string{strings.Repeat("a", 60) + ".example.org"}, 4); err != nil {
		t.Errorf("a long name: %v", err)
	}
}

// If a certificate cannot be created, the error contains no part of a key.
func TestRefused(t *testing.T) {
	ca, _ := certificate.NewAuthority("the CA", 1)
	other, _ := certificate.NewAuthority("another", 1)
	leaf, _ := certificate.Issue(ca, []string{"a"}, 1)
	if _, err := certificate.NewAuthority("", 1); err == nil {
		t.Error("a CA without a name")
	}
	if _, err := certificate.NewAuthority("x", 0); err == nil {
		t.Error("a CA without a life")
	}
	for name, p := range map[string]certificate.Pair{
		"no CA":            leaf,
		"nothing":          {},
		"a key of another": {Cert: ca.Cert, Key: other.Key},
		"garbage": {
			Cert: ca.Cert, Key: masked.New("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
		},
		"no certificate":    {Cert: []byte(ca.Key.Reveal()), Key: ca.Key},
		"no key in the key": {Cert: ca.Cert, Key: masked.New("s3cret")},
	} {
		_, err := certificate.Issue(p, []string{"a"}, 1)
		if err == nil {
			t.Errorf("%s signed a certificate", name)
		} else if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: the error holds the key", name)
		}
	}
	if _, err := certificate.Issue(ca, nil, 1); err == nil {
		t.Error("a certificate for nothing")
	}
	if said := fmt.Sprintf("%v %+v %#v", ca, ca, ca.Key); strings.Contains(said, "PRIVATE") {
		t.Error("the key is printed")
	}
}
