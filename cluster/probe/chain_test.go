package probe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// authority signs certificates for the tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issued is a certificate with its key.
type issued struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func caTemplate(t testing.TB, name string, from, until time.Time) *x509.Certificate {
	t.Helper()
	return &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

func newAuthority(t testing.TB, name string, until time.Time) authority {
	t.Helper()
	key := newKey(t)
	template := caTemplate(t, name, until.AddDate(-30, 0, 0), until)
	return authority{cert: sign(t, template, template, key, key), key: key}
}

// below returns an intermediate CA that a has signed.
func (a authority) below(t testing.TB, name string, until time.Time) authority {
	t.Helper()
	key := newKey(t)
	return authority{cert: sign(t, caTemplate(t, name, until.AddDate(-20, 0, 0), until), a.cert, key, a.key), key: key}
}

// issue returns a server certificate for localhost and 127.0.0.1. change can make it invalid.
func (a authority) issue(t testing.TB, change func(*x509.Certificate)) issued {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "leaf"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	key := newKey(t)
	return issued{cert: sign(t, template, a.cert, key, a.key), key: key}
}

func (a authority) pem() []byte { return certPEM(a.cert) }

func (i issued) tls(above ...authority) tls.Certificate {
	chain := [][]byte{i.cert.Raw}
	for _, a := range above {
		chain = append(chain, a.cert.Raw)
	}
	return tls.Certificate{Certificate: chain, PrivateKey: i.key}
}

func certPEM(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: cert.Raw})
}
