package stepstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"regexp"
	"time"
)

// pair is the key of a state. ${cert NAME LIFETIME} and ${key} use it.
type pair struct{ key *ecdsa.PrivateKey }

func newPair() *pair {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the system has no randomness
	}
	return &pair{key}
}

var certificate = regexp.MustCompile(`\$\{cert ([^ }]+) ([^ }]+)\}`)

func (p *pair) expand(text string) string {
	text = certificate.ReplaceAllStringFunc(text, func(m string) string {
		args := certificate.FindStringSubmatch(m)
		life, err := time.ParseDuration(args[2])
		if err != nil {
			return err.Error()
		}
		return base64.StdEncoding.EncodeToString(p.sign(args[1], life))
	})
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		panic(err) // a fresh P-256 key can always be marshalled
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return regexp.MustCompile(`\$\{key\}`).ReplaceAllLiteralString(text, base64.StdEncoding.EncodeToString(key))
}

// sign returns a certificate that expires after life. life can be negative.
func (p *pair) sign(name string, life time.Duration) []byte {
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-48 * time.Hour),
		NotAfter:    now.Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &p.key.PublicKey, p.key)
	if err != nil {
		panic(err) // the template above is complete
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
