package stepstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// openCA is the authority that this test binary's machine trusts, and no other; nil: it is as it is.
var openCA *openAuthority

type openAuthority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// TrustPublic gives this test binary a machine that trusts one public authority, for states whose section shows says
// "public". To be called before anything asks for the machine's own: in TestMain. remove takes its file away.
func TrustPublic() (remove func(), err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "a public authority"}, NotBefore: now.AddDate(-1, 0, 0),
		NotAfter: now.AddDate(9, 0, 0),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "carrick-public-")
	if err != nil {
		return nil, err
	}
	openCA = &openAuthority{c, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	file := filepath.Join(dir, "public.crt")
	err = errors.Join(
		os.WriteFile(file, openCA.pem, 0o600), os.Setenv("SSL_CERT_FILE", file),
		os.Setenv("SSL_CERT_DIR", filepath.Join(dir, "none")),
	)
	return func() { _ = os.RemoveAll(dir) }, err
}

// publicRoots expands ${public-ca} and ${public-ca-text}, as base64 and as a quoted text.
func publicRoots(text string) string {
	if openCA == nil {
		return text
	}
	quoted := `"` + strings.ReplaceAll(string(openCA.pem), "\n", `\n`) + `"`
	return strings.NewReplacer(
		"${public-ca}", base64.StdEncoding.EncodeToString(openCA.pem), "${public-ca-text}", quoted,
	).Replace(text)
}
