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

// openCA is the only CA that this test binary trusts. If it is nil, the system's CAs are trusted.
var openCA *openAuthority

type openAuthority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// TrustPublic makes this test binary trust exactly one public CA. States whose shows section contains "public" use it.
// Call it in TestMain before anything loads the system's CAs. remove deletes its file.
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

// publicRoots expands ${public-ca} to base64 and ${public-ca-text} to a quoted string.
func publicRoots(text string) string {
	if openCA == nil {
		return text
	}
	quoted := `"` + strings.ReplaceAll(string(openCA.pem), "\n", `\n`) + `"`
	return strings.NewReplacer(
		"${public-ca}", base64.StdEncoding.EncodeToString(openCA.pem), "${public-ca-text}", quoted,
	).Replace(text)
}
