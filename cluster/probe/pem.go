package probe

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
)

// Errors from parsing PEM data.
var (
	// errNoPEM means that data contains no PEM block.
	errNoPEM = errors.New("it contains no PEM block")
	// ErrDoubleBase64 means that data is base64-encoded PEM. This is a common mistake with Secrets, whose values are
	// base64-encoded anyway.
	ErrDoubleBase64 = errors.New("it is base64-encoded twice")
	// ErrKeyMismatch means that a private key does not belong to a certificate.
	ErrKeyMismatch = errors.New("the key does not match the certificate")
)

const certBlock = "CERTIFICATE"

// ParseCerts returns all certificates in PEM data, in order. Like TLS libraries, it ignores text between the blocks and
// blocks of other types. If it returns no error, there is at least one certificate. The error is ErrDoubleBase64 if the
// data is base64-encoded PEM. If a block cannot be parsed, the error contains its number.
func ParseCerts(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	blocks := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		blocks++
		if block.Type != certBlock {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read PEM block %d as a certificate: %w", blocks, err)
		}
		certs = append(certs, cert)
	}
	switch {
	case len(certs) > 0:
		return certs, nil
	case blocks > 0:
		return nil, errors.New("it contains PEM, but no certificate")
	}
	return nil, notPEM(data)
}

// KeyMatches returns nil if the private key in keyPEM (PKCS #8, PKCS #1 or SEC 1) belongs to cert, and ErrKeyMismatch
// if it does not. If the key cannot be parsed, it returns another error. No error contains a part of the key.
func KeyMatches(cert *x509.Certificate, keyPEM []byte) error {
	key, err := parseKey(keyPEM)
	if err != nil {
		return fmt.Errorf("read the private key: %w", err)
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(cert.PublicKey) {
		return ErrKeyMismatch
	}
	return nil
}

func parseKey(data []byte) (crypto.Signer, error) {
	blocks := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		blocks++
		switch block.Type {
		case "PRIVATE KEY":
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, errors.New("its PKCS #8 block is invalid")
			}
			return signer(key)
		case "RSA PRIVATE KEY":
			key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
			if err != nil {
				return nil, errors.New("its RSA block is invalid")
			}
			return key, nil
		case "EC PRIVATE KEY":
			key, err := x509.ParseECPrivateKey(block.Bytes)
			if err != nil {
				return nil, errors.New("its EC block is invalid")
			}
			return key, nil
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("it is encrypted with a passphrase")
		}
	}
	if blocks > 0 {
		return nil, errors.New("it contains PEM, but no private key")
	}
	return nil, notPEM(data)
}

func signer(key any) (crypto.Signer, error) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return key, nil
	case *ecdsa.PrivateKey:
		return key, nil
	case ed25519.PrivateKey:
		return key, nil
	}
	return nil, fmt.Errorf("a key of type %T cannot sign", key)
}

func notPEM(data []byte) error {
	packed := bytes.Join(bytes.Fields(data), nil)
	plain, err := base64.StdEncoding.DecodeString(string(packed))
	if err == nil && bytes.Contains(plain, []byte("-----BEGIN ")) {
		return ErrDoubleBase64
	}
	return errNoPEM
}
