package proxy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"time"
)

type (
	connKey  struct{} // key of a request's connection in its context
	askedKey struct{} // key of the parsed Request in its context
)

var errIntercepted = errors.New("the proxy does not forward the answer")

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// roundTrip forwards a request with the identity of the user who sent it.
func (p *Proxy) roundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return p.asOther.RoundTrip(r)
	}
	cert := r.TLS.PeerCertificates[0]
	if block, _ := pem.Decode(p.admin.ClientCert); block != nil && bytes.Equal(block.Bytes, cert.Raw) {
		return p.asAdmin.RoundTrip(r)
	}
	if _, err := cert.Verify(
		x509.VerifyOptions{Roots: p.trusted, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	); err != nil {
		return p.asOther.RoundTrip(r) // the API server treats the request as anonymous, as it would without the proxy
	}
	r.Header.Set("Impersonate-User", cert.Subject.CommonName)
	r.Header.Del("Impersonate-Group")
	for _, group := range cert.Subject.Organization {
		r.Header.Add("Impersonate-Group", group)
	}
	return p.asAdmin.RoundTrip(r)
}

// authority is the proxy's own CA, with a server certificate from this CA.
type authority struct {
	pem    []byte
	server tls.Certificate
}

func newAuthority() (*authority, error) {
	now := time.Now()
	make := func(name string, usage x509.KeyUsage) (*x509.Certificate, *ecdsa.PrivateKey, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		return &x509.Certificate{
			SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), KeyUsage: usage,
		}, key, err
	}
	ca, caKey, err := make("proxy of a test", x509.KeyUsageCertSign)
	if err != nil {
		return nil, err
	}
	ca.IsCA, ca.BasicConstraintsValid = true, true
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	leaf, key, err := make("127.0.0.1", x509.KeyUsageDigitalSignature)
	if err != nil {
		return nil, err
	}
	leaf.IPAddresses, leaf.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	return &authority{
		pem:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		server: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}, nil
}

// reset resets the client's connection and aborts the request's handler.
func reset(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		resetConn(c)
	}
	panic(http.ErrAbortHandler)
}

// resetConn closes a connection with a TCP reset.
func resetConn(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
