package facts

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hiddeco/sshsig"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"
)

// Namespace is the SSH signature namespace of facts files: `ssh-keygen -Y sign -n carrick-facts`.
const Namespace = "carrick-facts"

// ErrUnsigned is returned for a facts file without a signature.
var ErrUnsigned = errors.New("is not signed: it was written by an older version of carrick, or is incomplete. Its " +
	"admin must run carrick handover again, with this version")

// ErrSignature is returned for a facts file whose signature does not verify.
var ErrSignature = errors.New(
	"has an invalid signature: it was changed after it was signed, or is incomplete. Its admin must run carrick " +
		"handover again, with this version",
)

// Key is a private key that signs facts files.
type Key struct{ signer ssh.Signer }

// Fingerprint returns the fingerprint as `ssh-keygen -l` shows it, such as SHA256:….
func (k *Key) Fingerprint() string { return ssh.FingerprintSHA256(k.signer.PublicKey()) }

// ParseKey reads an unencrypted ed25519 private key in OpenSSH format.
func ParseKey(data []byte) (*Key, error) {
	signer, err := ssh.ParsePrivateKey(data)
	switch {
	case errors.As(err, new(*ssh.PassphraseMissingError)):
		return nil, errors.New("the key is encrypted with a passphrase; carrick requires an unencrypted key")
	case err != nil:
		return nil, errors.New("it is not an SSH private key")
	case signer.PublicKey().Type() != ssh.KeyAlgoED25519:
		return nil, fmt.Errorf("it is a key of type %s; carrick requires ed25519", signer.PublicKey().Type())
	}
	return &Key{signer}, nil
}

// OwnKey reads the user's signing key from carrick/signing-key in os.UserConfigDir. On first use it creates the key.
func OwnKey() (*Key, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("signing key: %w; define one, or pass --sign-with FILE", err)
	}
	path := filepath.Join(dir, "carrick", "signing-key")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createKey(path); err != nil {
			return nil, fmt.Errorf("create the signing key: %w", err)
		}
		info, err = os.Lstat(path)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("signing key: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("signing key %s: is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf(
			"signing key %s: other users can read or change it. Delete it: carrick then creates another key", path,
		)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	key, err := ParseKey(data)
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", path, err)
	}
	return key, nil
}

// NewKey returns a new key and its private part in the format that ParseKey reads.
func NewKey() (*Key, []byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "carrick")
	if err != nil {
		return nil, nil, err
	}
	text := pem.EncodeToMemory(block)
	key, err := ParseKey(text)
	return key, text, err
}

// createKey writes a new key atomically. If another process has created a key in the meantime, it keeps that key.
func createKey(path string) error {
	_, text, err := NewKey()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".signing-key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// signatureKey begins the last entry of a facts file. Everything before it is signed.
const signatureKey = "\nsignature:"

func (k *Key) sign(text []byte) ([]byte, error) {
	sig, err := sshsig.Sign(bytes.NewReader(text), k.signer, sshsig.HashSHA512, Namespace)
	if err != nil {
		return nil, err
	}
	end, err := yaml.Marshal(signature{string(sshsig.Armor(sig))})
	return append(text, end...), err
}

type signature struct {
	Signature string `yaml:"signature"`
}

// verified returns the signed part of a facts file and the fingerprint of the key that signed it.
func verified(data []byte) (signed []byte, signer string, err error) {
	at := bytes.LastIndex(data, []byte(signatureKey))
	if at < 0 {
		return nil, "", ErrUnsigned
	}
	signed = data[:at+1]
	var end signature
	d := yaml.NewDecoder(bytes.NewReader(data[at+1:]))
	d.KnownFields(true)
	if d.Decode(&end) != nil || d.Decode(new(any)) != io.EOF {
		return nil, "", ErrSignature
	}
	sig, err := sshsig.Unarmor([]byte(end.Signature))
	if err != nil || sig.PublicKey.Type() != ssh.KeyAlgoED25519 {
		return nil, "", ErrSignature
	}
	if err := sshsig.Verify(bytes.NewReader(signed), sig, sig.PublicKey, sshsig.HashSHA512, Namespace); err != nil {
		return nil, "", ErrSignature
	}
	return signed, ssh.FingerprintSHA256(sig.PublicKey), nil
}
