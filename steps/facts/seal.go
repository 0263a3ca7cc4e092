package facts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"go.yaml.in/yaml/v3"
)

// Sealed is the encrypted part of a facts file. Only the recipients can decrypt it.
type Sealed struct {
	For   []string `yaml:"for"`   // recipients, or "passphrase"
	Names []string `yaml:"names"` // names of the encrypted facts
	Age   string   `yaml:"age"`   // armored age data
}

// ByPassphrase in Sealed.For means that a passphrase decrypts the secrets.
const ByPassphrase = "passphrase"

// inside is the encrypted content. Signer is the fingerprint of the key that signs the file. The fingerprint prevents
// another admin from copying these sealed secrets into a file with a different address.
type inside struct {
	Signer string            `yaml:"signer"`
	Facts  map[string]string `yaml:"facts"`
}

// ErrSealed is returned if none of the given keys decrypts the secrets.
var ErrSealed = errors.New("is encrypted")

// Keys are private keys or passphrases that decrypt sealed secrets.
type Keys []age.Identity

// Recipients are the public keys, or the passphrase, for which the secrets of a file are encrypted.
type Recipients struct {
	Names []string // as in the file: public keys, or ByPassphrase
	keys  []age.Recipient
}

// For parses age recipients (age1…) and SSH public keys. The error quotes the first text that is neither.
func For(texts []string) (Recipients, error) {
	var out Recipients
	for _, t := range texts {
		var r age.Recipient
		var err error
		switch t = strings.TrimSpace(t); {
		case strings.HasPrefix(t, "age1"):
			r, err = age.ParseX25519Recipient(t)
		case strings.HasPrefix(t, "ssh-"):
			r, err = agessh.ParseRecipient(t)
		default:
			err = errors.New("it begins neither with age1 nor with ssh-")
		}
		if err != nil {
			return Recipients{}, fmt.Errorf("%s is not a valid recipient: %w", oneWord(t), err)
		}
		out.Names, out.keys = append(out.Names, t), append(out.keys, r)
	}
	return out, nil
}

// ForPassphrase returns recipients that decrypt with a passphrase.
func ForPassphrase(phrase string) (Recipients, error) {
	r, err := age.NewScryptRecipient(phrase)
	if err != nil {
		return Recipients{}, err
	}
	r.SetWorkFactor(scryptFactor)
	return Recipients{[]string{ByPassphrase}, []age.Recipient{r}}, nil
}

// Passphrase returns the key that decrypts what was sealed with a passphrase.
func Passphrase(phrase string) (Keys, error) {
	id, err := age.NewScryptIdentity(phrase)
	if err != nil {
		return nil, err
	}
	id.SetMaxWorkFactor(scryptFactor)
	return Keys{id}, nil
}

// scryptFactor is the base-two logarithm of scrypt's work factor. This is age's default (256 MiB, about a second). A
// file with a higher factor is rejected. Otherwise its writer could choose how much memory and time its reader spends.
const scryptFactor = 18

// Identities parses a file of private keys that decrypt secrets. The file is in age's own format or is an SSH private
// key without a passphrase.
func Identities(data []byte) (Keys, error) {
	if bytes.Contains(data, []byte("PRIVATE KEY-----")) {
		id, err := agessh.ParseIdentity(data)
		if err != nil {
			return nil, errors.New("it is not a supported SSH key (ed25519 or RSA, without a passphrase)")
		}
		return Keys{id}, nil
	}
	ids, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil {
		return nil, errors.New("it is neither an age identity (AGE-SECRET-KEY-1…) nor an SSH private key")
	}
	return Keys(ids), nil
}

// Seal encrypts secrets and stores them in f. The secrets are keyed by fact name. key is the key that will sign the
// file.
func (f *File) Seal(secrets map[string]string, to Recipients, key *Key) error {
	body, err := yaml.Marshal(inside{key.Fingerprint(), secrets})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	armored := armor.NewWriter(&out)
	w, err := age.Encrypt(armored, to.keys...)
	if err != nil {
		return err
	}
	if _, err := w.Write(body); err != nil {
		return err
	}
	if err := errors.Join(w.Close(), armored.Close()); err != nil {
		return err
	}
	f.Sealed = &Sealed{For: to.Names, Names: slices.Sorted(maps.Keys(secrets)), Age: out.String()}
	return nil
}

// Unseal decrypts the secrets. If none of the keys fits, it returns ErrSealed.
func (f *File) Unseal(keys Keys) error {
	if f.Sealed == nil {
		return nil
	}
	if len(keys) == 0 {
		return ErrSealed
	}
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(f.Sealed.Age)), keys...)
	if noMatch := (*age.NoIdentityMatchError)(nil); errors.As(err, &noMatch) {
		return ErrSealed
	}
	if err != nil {
		return fmt.Errorf("the secrets cannot be decrypted: %s", said(err.Error(), 300))
	}
	body, err := io.ReadAll(io.LimitReader(r, Max))
	if err != nil {
		return fmt.Errorf("the secrets cannot be decrypted: %s", said(err.Error(), 300))
	}
	var in inside
	if err := yaml.Unmarshal(body, &in); err != nil {
		return errors.New("the decrypted secrets have an unknown format")
	}
	if in.Signer != f.Signer {
		return errors.New("the secrets were encrypted for a file signed with another key, or by an older version of " +
			"carrick. The admin who wrote the file must run carrick handover again")
	}
	f.secrets = in.Facts
	return nil
}

// Secret returns a sealed fact. Before Unseal, the bool is false.
func (f *File) Secret(name string) (string, bool) {
	v, ok := f.secrets[name]
	return v, ok
}

// Opened reports whether the secrets are decrypted. It also returns true if there are none.
func (f *File) Opened() bool { return f.Sealed == nil || f.secrets != nil }
