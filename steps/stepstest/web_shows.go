package stepstest

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// webShows is a shows section: the certificate that the HTTP API presents instead of its own.
type webShows struct {
	Name  string `yaml:"name"`  // its common name; "": that of For
	For   string `yaml:"for"`   // the name or address for which it is valid; "": none
	From  string `yaml:"from"`  // start of its validity, from now; "": two days ago
	Life  string `yaml:"life"`  // expiry, from now, may be negative; "": a year
	Alone bool   `yaml:"alone"` // it is self-signed; else the API's own CA signs it

	Public bool `yaml:"public"` // the public CA signs it (TrustPublic)
}

var webCert = regexp.MustCompile(`\$\{web-cert ([^ }]+) ([^ }]+)\}`)

// certs expands ${web-cert NAME LIFETIME} and ${web-key}: a certificate that the API's CA has signed, and its key; and
// ${web-shown}: the one that the API presents.
func (w *web) certs(text string) string {
	now := &w.TLS.Certificates[0]
	if c := w.shown.Load(); c != nil {
		now = c
	}
	text = strings.ReplaceAll(
		publicRoots(text), "${web-shown}",
		base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: now.Certificate[0]})),
	)
	text = webCert.ReplaceAllStringFunc(text, func(m string) string {
		args := webCert.FindStringSubmatch(m)
		c, err := w.leaf(webShows{For: args[1], Life: args[2]})
		if err != nil {
			return err.Error()
		}
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
	})
	der, err := x509.MarshalPKCS8PrivateKey(w.key)
	if err != nil {
		panic(err) // a fresh P-256 key can always be marshalled
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return regexp.MustCompile(`\$\{web-key\}`).ReplaceAllLiteralString(text, base64.StdEncoding.EncodeToString(key))
}

// leaf returns a certificate for the API's key.
func (w *web) leaf(s webShows) (tls.Certificate, error) {
	life := 365 * 24 * time.Hour
	if s.Life != "" {
		var err error
		if life, err = time.ParseDuration(s.Life); err != nil {
			return tls.Certificate{}, err
		}
	}
	begins := -48 * time.Hour
	if s.From != "" {
		var err error
		if begins, err = time.ParseDuration(s.From); err != nil {
			return tls.Certificate{}, err
		}
	}
	if s.Name == "" {
		s.Name = s.For
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: s.Name},
		NotBefore: now.Add(begins), NotAfter: now.Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(s.For); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else if s.For != "" {
		c.DNSNames = []string{s.For}
	}
	parent, by := w.own, w.key
	switch {
	case s.Alone:
		parent = c
	case s.Public && openCA == nil:
		return tls.Certificate{}, errors.New("no CA is public here (TrustPublic)")
	case s.Public:
		parent, by = openCA.cert, openCA.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &w.key.PublicKey, by)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: w.key}, err
}

// show makes the API present another certificate; "" is its own.
func (w *web) show(text string) error {
	var s webShows
	if err := yaml.Unmarshal([]byte(text), &s); err != nil || text == "" {
		return err
	}
	c, err := w.leaf(s)
	w.shown.Store(&c)
	return err
}

// ownKey returns the key of the certificate that a server presents.
func ownKey(c *tls.Config) *ecdsa.PrivateKey { return c.Certificates[0].PrivateKey.(*ecdsa.PrivateKey) }
