package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
)

// Pair is a certificate and its private key.
type Pair struct {
	Cert []byte       // PEM
	Key  masked.Value // PEM, PKCS #8
}

// backdated is how far in the past a certificate's validity starts, so that clients whose clocks are behind accept the
// certificate.
const backdated = 5 * time.Minute

// NewAuthority creates a self-signed certificate authority with the given name. It is allowed to sign server
// certificates, but no other CAs.
func NewAuthority(name string, years int) (Pair, error) {
	if name == "" || years < 1 || years > 100 {
		return Pair{}, fmt.Errorf("a CA requires a name and a validity of 1 to 100 years, not %q and %d", name, years)
	}
	now := time.Now()
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-backdated), NotAfter: now.AddDate(years, 0, 0),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return sign(c, c, nil)
}

// Issue issues a server certificate for the given host names and IP addresses, and signs it with ca. The certificate
// does not outlive the CA.
func Issue(ca Pair, hosts []string, days int) (Pair, error) {
	parent, key, err := ca.parse()
	if err != nil {
		return Pair{}, fmt.Errorf("the CA: %w", err)
	}
	now := time.Now()
	switch {
	case len(hosts) == 0 || days < 1:
		return Pair{}, errors.New("a server certificate requires a name or an address, and a validity of at least one day")
	case !parent.IsCA:
		return Pair{}, fmt.Errorf("the certificate %q is not a CA", clean.Text(parent.Subject.CommonName))
	case !now.Before(parent.NotAfter):
		return Pair{}, fmt.Errorf("the CA expired on %s", parent.NotAfter.UTC().Format(time.DateOnly))
	}
	c := &x509.Certificate{
		NotBefore: now.Add(-backdated), NotAfter: now.AddDate(0, 0, days), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if c.NotAfter.After(parent.NotAfter) {
		c.NotAfter = parent.NotAfter
	}
	for _, h := range hosts {
		if ip, err := netip.ParseAddr(h); err == nil {
			c.IPAddresses = append(c.IPAddresses, ip.Unmap().AsSlice())
		} else {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	if c.Subject.CommonName = hosts[0]; len(hosts[0]) > 64 { // 64 is the maximum in X.509; clients ignore the common name
		c.Subject.CommonName = hosts[0][:64]
	}
	return sign(c, parent, key)
}

// sign generates a key pair and signs its certificate with key. If key is nil, the certificate is self-signed.
func sign(c, parent *x509.Certificate, key *ecdsa.PrivateKey) (Pair, error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	if key == nil {
		key = own
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &own.PublicKey, key)
	if err != nil {
		return Pair{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  masked.New(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))),
	}, nil
}

// parse returns the certificate and its key. No error contains a part of the key.
func (p Pair) parse() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(p.Cert)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, nil, errors.New("no certificate in PEM format")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, err
	}
	block, _ = pem.Decode([]byte(p.Key.Reveal()))
	if block == nil {
		return nil, nil, errors.New("no private key in PEM format")
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		any, err = x509.ParseECPrivateKey(block.Bytes)
	}
	key, ok := any.(*ecdsa.PrivateKey)
	switch {
	case err != nil || !ok:
		return nil, nil, errors.New("the private key is not an elliptic curve key in PKCS #8 or SEC 1")
	case !key.PublicKey.Equal(c.PublicKey):
		return nil, nil, errors.New("the key does not belong to the certificate")
	}
	return c, key, nil
}
