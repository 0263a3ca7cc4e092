package vsphere

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/steps"
)

// The CA in a webhook may be one of before, which proves the certificate until it ends.
func TestACAInTheWebhookEnds(t *testing.T) {
	ends := func(in time.Duration) *x509.Certificate {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotBefore: now.Add(-300 * 24 * time.Hour), NotAfter: now.Add(in), IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		return c
	}
	soonEnds, lasts := ends(5*24*time.Hour), ends(900*24*time.Hour)
	for situation, c := range map[string]struct {
		root, beside *x509.Certificate
		want         steps.Status
	}{
		"the one beside the certificate is another check's": {soonEnds, soonEnds, steps.Pass},
		"another, which lasts":                              {lasts, soonEnds, steps.Pass},
		"another, which ends":                               {soonEnds, lasts, steps.Warn},
	} {
		text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.beside.Raw}))
		s := &cluster.Secret{Data: map[string]cluster.Masked{"ca.crt": cluster.Mask(text)}}
		r := endsHere(s, c.root, "webhook a", "carrick apply")
		if r.Status != c.want || (c.want == steps.Warn && (!strings.Contains(r.Found, "webhook a") || r.Fix != "carrick apply")) {
			t.Errorf("%s: %s: %s (%s)", situation, r.Status, r.Found, r.Fix)
		}
	}
}
