package certmanager

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// pair is a certificate with its private key.
type pair struct {
	cert *x509.Certificate
	key  crypto.Signer

	certPEM, keyPEM, caPEM []byte
}

// parse parses a PEM key pair. It returns an error if the certificate and the key do not match.
func parse(certPEM, keyPEM []byte) (*pair, error) {
	if len(certPEM) == 0 || len(keyPEM) == 0 {
		return nil, errors.New("no data for tls.crt or tls.key in the Secret")
	}
	read, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	key, ok := read.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return &pair{cert: read.Leaf, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// request describes a certificate to sign.
type request struct {
	name        string
	dns, ips    []string
	isCA        bool
	from, until time.Time
	usages      []string
	algorithm   string
	size        int
	encoding    string
	key         crypto.Signer // nil: generate a key
	by          *pair         // nil: self-signed
}

func (r request) sign() (*pair, error) {
	key := r.key
	if key == nil {
		var err error
		if key, err = newKey(r.algorithm, r.size); err != nil {
			return nil, err
		}
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: r.name}, DNSNames: r.dns, NotBefore: r.from, NotAfter: r.until,
		BasicConstraintsValid: true, IsCA: r.isCA,
	}
	if len(r.usages) == 0 {
		r.usages = []string{"digital signature", "key encipherment"}
	}
	for _, usage := range r.usages {
		template.KeyUsage |= keyUsages[usage]
		if extended, ok := extendedUsages[usage]; ok {
			template.ExtKeyUsage = append(template.ExtKeyUsage, extended)
		}
	}
	if r.isCA {
		template.KeyUsage |= x509.KeyUsageCertSign
	}
	for _, text := range r.ips {
		ip := net.ParseIP(text)
		if ip == nil {
			return nil, fmt.Errorf(notPlayed+"invalid IP address: %q, which upstream's webhook rejects", text)
		}
		template.IPAddresses = append(template.IPAddresses, ip)
	}
	parent, signer := template, key
	if r.by != nil {
		parent, signer = r.by.cert, r.by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encode(key, r.encoding)
	if err != nil {
		return nil, err
	}
	made := &pair{
		key:     key,
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:  keyPEM,
	}
	made.caPEM = made.certPEM
	if r.by != nil {
		made.caPEM = r.by.certPEM
	}
	made.cert, err = x509.ParseCertificate(der)
	return made, err
}

// Supported key usages (pkg/api/util/usages.go).
var (
	keyUsages = map[string]x509.KeyUsage{
		"digital signature": x509.KeyUsageDigitalSignature, "signing": x509.KeyUsageDigitalSignature,
		"key encipherment": x509.KeyUsageKeyEncipherment, "cert sign": x509.KeyUsageCertSign,
		"crl sign": x509.KeyUsageCRLSign,
	}
	extendedUsages = map[string]x509.ExtKeyUsage{
		"server auth": x509.ExtKeyUsageServerAuth, "client auth": x509.ExtKeyUsageClientAuth,
	}
)

// encode encodes a private key as PEM. The default is PKCS#1 for RSA and SEC 1 for ECDSA (pkg/util/pki/generate.go,
// EncodePrivateKey).
func encode(key crypto.Signer, encoding string) ([]byte, error) {
	block := &pem.Block{Type: "PRIVATE KEY"}
	var err error
	rsaKey, isRSA := key.(*rsa.PrivateKey)
	ecKey, isEC := key.(*ecdsa.PrivateKey)
	switch {
	case encoding == "PKCS8" || !isRSA && !isEC:
		block.Bytes, err = x509.MarshalPKCS8PrivateKey(key)
	case isRSA:
		block.Type, block.Bytes = "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)
	default:
		block.Type = "EC PRIVATE KEY"
		block.Bytes, err = x509.MarshalECPrivateKey(ecKey)
	}
	return pem.EncodeToMemory(block), err
}

func newKey(algorithm string, size int) (crypto.Signer, error) {
	switch algorithm {
	case "", "RSA":
		if size == 0 {
			size = 2048
		}
		return rsa.GenerateKey(rand.Reader, size)
	case "ECDSA":
		curve, ok := map[int]elliptic.Curve{
			0: elliptic.P256(), 256: elliptic.P256(), 384: elliptic.P384(), 521: elliptic.P521(),
		}[size]
		if !ok {
			return nil, fmt.Errorf("unsupported ECDSA key size: %d", size)
		}
		return ecdsa.GenerateKey(curve, rand.Reader)
	case "Ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("unsupported private key algorithm: %s", algorithm)
}
