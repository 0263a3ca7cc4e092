package probe

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseCerts(t *testing.T) {
	a := newAuthority(t, "a", time.Now().AddDate(1, 0, 0)).pem()
	b := newAuthority(t, "b", time.Now().AddDate(1, 0, 0)).pem()
	key := keyPEM(t, newKey(t))
	damaged := pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: []byte("no DER")})

	for _, tc := range []struct {
		situation string
		data      []byte
		names     string
		err       error
		words     string
	}{
		{situation: "one", data: a, names: "a"},
		{situation: "two, with words between", data: bytes.Join([][]byte{a, b}, []byte("# the next\n")), names: "a b"},
		{situation: "a key beside it", data: append(bytes.Clone(key), a...), names: "a"},
		{situation: "nothing", err: errNoPEM},
		{situation: "no PEM", data: []byte("hello"), err: errNoPEM},
		{situation: "base64 twice", data: []byte(base64.StdEncoding.EncodeToString(a)), err: ErrDoubleBase64},
		{situation: "a key alone", data: key, words: "no certificate"},
		{situation: "the second is damaged", data: append(bytes.Clone(a), damaged...), words: "PEM block 2"},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			certs, err := ParseCerts(tc.data)
			if tc.err != nil && !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if tc.words != "" && (err == nil || !strings.Contains(err.Error(), tc.words)) {
				t.Fatalf("error %v does not say %q", err, tc.words)
			}
			if (err != nil) != (tc.err != nil || tc.words != "") {
				t.Fatalf("error %v", err)
			}
			var names []string
			for _, cert := range certs {
				names = append(names, cert.Subject.CommonName)
			}
			if got := strings.Join(names, " "); got != tc.names {
				t.Errorf("got %q, want %q", got, tc.names)
			}
		})
	}
}

func TestKeyMatches(t *testing.T) {
	root := newAuthority(t, "root", time.Now().AddDate(1, 0, 0))
	leaf := root.issue(t, nil)
	ec, err := x509.MarshalECPrivateKey(leaf.key)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		situation string
		key       []byte
		err       error
		words     string
	}{
		{situation: "PKCS #8", key: keyPEM(t, leaf.key)},
		{situation: "SEC 1", key: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ec})},
		{situation: "another key", key: keyPEM(t, newKey(t)), err: ErrKeyMismatch},
		{
			situation: "a key of another kind", err: ErrKeyMismatch,
			key: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)}),
		},
		{
			situation: "base64 twice", key: []byte(base64.StdEncoding.EncodeToString(keyPEM(t, leaf.key))), err: ErrDoubleBase64,
		},
		{situation: "nothing", err: errNoPEM},
		{situation: "a certificate", key: certPEM(leaf.cert), words: "no private key"},
		{
			situation: "locked", words: "passphrase",
			key: pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}),
		},
		{
			situation: "damaged", words: "is invalid",
			key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}),
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			err := KeyMatches(leaf.cert, tc.key)
			switch {
			case tc.err != nil && !errors.Is(err, tc.err),
				tc.words != "" && (err == nil || !strings.Contains(err.Error(), tc.words)),
				tc.err == nil && tc.words == "" && err != nil:
				t.Errorf("error %v, want %v %s", err, tc.err, tc.words)
			}
		})
	}
}

func FuzzParseCerts(f *testing.F) {
	a := newAuthority(f, "a", time.Now().AddDate(1, 0, 0)).pem()
	f.Add(a)
	f.Add(append(bytes.Clone(a), a...))
	f.Add([]byte(base64.StdEncoding.EncodeToString(a)))
	f.Add(keyPEM(f, newKey(f)))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		certs, err := ParseCerts(data)
		if (err == nil) != (len(certs) > 0) {
			t.Fatalf("%d certificates and error %v", len(certs), err)
		}
		for _, cert := range certs {
			if _, words := CertProblem(
				[]*x509.Certificate{cert}, x509.NewCertPool(), "localhost", time.Time{},
			); strings.ContainsFunc(words, func(r rune) bool { return r < ' ' }) {
				t.Fatalf("control characters in %q", words)
			}
			_ = KeyMatches(cert, data)
		}
	})
}

func keyPEM(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
