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

// webShows is a shows section. It describes the certificate that the HTTP API presents instead of its own.
type webShows struct {
	Name  string `yaml:"name"`  // common name; default: the same as For
	For   string `yaml:"for"`   // the name or address for which it is valid; "" for none
	From  string `yaml:"from"`  // start of its validity, relative to now; default: two days ago
	Life  string `yaml:"life"`  // expiry, relative to now, can be negative; default: a year
	Alone bool   `yaml:"alone"` // self-signed instead of signed by the API's own CA

	Public bool `yaml:"public"` // signed by the public CA (TrustPublic)
}

var webCert = regexp.MustCompile(`\$\{web-cert ([^ }]+) ([^ }]+)\}`)

// certs expands three macros. ${web-cert NAME LIFETIME} is a certificate that the API's CA has signed. ${web-key} is
// its key. ${web-shown} is the certificate that the API presents.
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
		return tls.Certificate{}, errors.New("the test trusts no public CA (TrustPublic)")
	case s.Public:
		parent, by = openCA.cert, openCA.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &w.key.PublicKey, by)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: w.key}, err
}

// show makes the API present the certificate that text describes. If text is "", the API presents its own.
func (w *web) show(text string) error {
	var s webShows
	if err := yaml.Unmarshal([]byte(text), &s); err != nil || text == "" {
		return err
	}
	c, err := w.leaf(s)
	w.shown.Store(&c)
	return err
}

func ownKey(c *tls.Config) *ecdsa.PrivateKey { return c.Certificates[0].PrivateKey.(*ecdsa.PrivateKey) }
