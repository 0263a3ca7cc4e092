package stepstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// authority is a cluster's own CA. It signs the certificates of its API server and of clients.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(name string) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the system has no randomness
	}
	c := template(pkix.Name{CommonName: name}, 10*365*24*time.Hour)
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		panic(err) // the template is complete
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err) // it was just created
	}
	return &authority{cert, key}
}

func template(subject pkix.Name, life time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject, NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(life),
	}
}

func (a *authority) sign(c *x509.Certificate, public crypto.PublicKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, public, a.key)
	if err != nil {
		panic(err) // the templates are complete
	}
	return der
}

// tls returns the API server's TLS configuration, which also requests client certificates.
func (a *authority) tls() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the system has no randomness
	}
	c := template(pkix.Name{CommonName: "kube-apiserver"}, 365*24*time.Hour)
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	c.DNSNames, c.IPAddresses = []string{
		"example.com", "*.example.com",
	}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{a.sign(c, &key.PublicKey)}, PrivateKey: key}},
		ClientAuth:   tls.RequestClientCert, // a client without a certificate can have a token
		ClientCAs:    a.pool(),
	}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// client returns the user of a client certificate. If the certificate is not valid, it returns the zero person.
func (a *authority) client(chain []*x509.Certificate) person {
	if len(chain) == 0 {
		return person{}
	}
	_, err := chain[0].Verify(
		x509.VerifyOptions{Roots: a.pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	)
	if err != nil {
		return person{}
	}
	return person{chain[0].Subject.CommonName, chain[0].Subject.Organization}
}

// clientKey is shared by all clients. It is the same in each run, so that names derived from it don't change. No real
// server trusts it.
var clientKey = func() *ecdsa.PrivateKey {
	seed := sha256.Sum256([]byte("stepstest"))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		panic(err) // the seed is in the range of the curve
	}
	return key
}()

var client = regexp.MustCompile(`\$\{client-(cert|csr) ([^ }]+) ([^ }]+)(?: ([^ }]+))?\}`)

// expand replaces ${ca-text}, ${client-key}, ${client-cert …} and ${client-csr …}.
func (a *authority) expand(text string) string {
	text = strings.ReplaceAll(text, "${ca-text}", strconv.Quote(string(a.pem())))
	key, err := x509.MarshalPKCS8PrivateKey(clientKey)
	if err != nil {
		panic(err) // such a key can always be marshalled
	}
	text = strings.ReplaceAll(text, "${client-key}", inPEM("PRIVATE KEY", key))
	return client.ReplaceAllStringFunc(text, func(m string) string {
		args := client.FindStringSubmatch(m)
		subject := pkix.Name{CommonName: args[2]}
		if args[3] != "-" {
			subject.Organization = strings.Split(args[3], ",")
		}
		if args[1] == "csr" {
			// The result is the same in each run (RFC 6979).
			der, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{Subject: subject}, clientKey)
			if err != nil {
				return err.Error()
			}
			return inPEM("CERTIFICATE REQUEST", der)
		}
		life, err := time.ParseDuration(args[4])
		if err != nil {
			return err.Error()
		}
		c := template(subject, life)
		c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		return inPEM("CERTIFICATE", a.sign(c, &clientKey.PublicKey))
	})
}

// inPEM returns the base64 of a PEM block, as Secrets and kubeconfigs contain it.
func inPEM(kind string, der []byte) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
