// Package pki creates the certificates of a control plane in kubeadm's layout. It creates a CA for servers and clients,
// another CA for the front proxy of the aggregation layer, and a signing key for ServiceAccount tokens.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is the lifetime of a certificate. No sandbox runs that long.
const validity = 365 * 24 * time.Hour

// Pair is a PEM-encoded certificate with its private key.
type Pair struct{ Cert, Key []byte }

// Write writes folder/name.crt and folder/name.key and returns both paths.
func (p Pair) Write(folder, name string) (cert, key string, err error) {
	cert, key = filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")
	if err := os.WriteFile(cert, p.Cert, 0o600); err != nil {
		return "", "", err
	}
	return cert, key, os.WriteFile(key, p.Key, 0o600)
}

// Authority is a certificate authority (CA).
type Authority struct {
	Pair
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority creates a self-signed CA.
func NewAuthority(name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(pair.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: pair, cert: cert, key: key}, nil
}

// Client issues a client certificate. The API server reads the user and the groups from its subject.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Server issues a serving certificate for the given DNS names and IP addresses. The first one is also the common name.
func (a *Authority) Server(names ...string) (Pair, error) {
	return a.ServerUntil(time.Now().Add(validity), names...)
}

// ServerUntil is like Server, but the certificate expires at end.
func (a *Authority) ServerUntil(end time.Time, names ...string) (Pair, error) {
	template := &x509.Certificate{
		NotAfter:    end,
		Subject:     pkix.Name{CommonName: names[0]},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return a.issue(template)
}

func (a *Authority) issue(template *x509.Certificate) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	template.BasicConstraintsValid = true
	return sign(template, a.cert, key, a.key)
}

// NewSigningKey creates a PEM-encoded key pair that signs ServiceAccount tokens.
func NewSigningKey() (private, public []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	if private, err = encodeKey(key); err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	return private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, parentKey crypto.Signer) (Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-5 * time.Minute)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(validity)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	encoded, err := encodeKey(key)
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: encoded}, err
}
