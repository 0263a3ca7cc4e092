package liqopeer

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// subject returns the certificate subject for a slice's virtual kubelet.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/authentication/csr.go (CommonNameResourceSliceCSR).
func subject(slice, consumer string) pkix.Name {
	sum := sha256.Sum256([]byte(consumer))
	return pkix.Name{CommonName: slice + "-" + hex.EncodeToString(sum[:6]), Organization: []string{consumer}}
}

// request returns a PEM-encoded certificate request for a slice.
func request(key crypto.Signer, slice, consumer string) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(
		rand.Reader, &x509.CertificateRequest{Subject: subject(slice, consumer)}, key,
	)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// examine validates a slice's certificate request. As in upstream, it does not check the signature, because the API
// server does that later.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/authentication/csr.go (CheckCSRForResourceSlice).
func examine(data []byte, slice, consumer string) error {
	block, _ := pem.Decode(data)
	if block == nil {
		return errors.New("spec.csr is not PEM")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return fmt.Errorf("spec.csr: %w", err)
	}
	if err := asked.CheckSignature(); err != nil {
		return fmt.Errorf("spec.csr: %w", err)
	}
	want := subject(slice, consumer)
	if asked.Subject.CommonName != want.CommonName {
		return fmt.Errorf("spec.csr is for common name %q, this slice is %q", asked.Subject.CommonName, want.CommonName)
	}
	if len(asked.Subject.Organization) != 1 || asked.Subject.Organization[0] != consumer {
		return fmt.Errorf("spec.csr is for organization %q, this slice is of %q", asked.Subject.Organization, consumer)
	}
	return nil
}

// privateKey parses a PEM private key in PKCS#8, SEC 1 or PKCS#1.
func privateKey(data []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return signer, nil
}
