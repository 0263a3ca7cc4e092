package probe

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"unique"
)

// ErrKey means that the data is not a WireGuard key, or that two peers cannot use their keys with each other.
var ErrKey = errors.New("not a usable WireGuard key")

// keySize is the size of a private or public key in bytes (RFC 7748, section 5).
const keySize = 32

// Sizes of keys in other formats, which users store by mistake.
const (
	base64Size  = 44 // a key in base64; a public key in DER (RFC 8410) has the same size
	pkcs8Size   = 48 // a private key in DER
	newlineSize = 45 // a key in base64 with a newline, as wg genkey prints it
)

const hidden = "(hidden)"

// PrivateKey is the private key of a WireGuard peer. It is printed, logged and encoded as "(hidden)". Only Reveal
// returns the key. The zero value means that there is no key.
type PrivateKey struct {
	// raw is a pointer to a string, because fmt prints unexported fields without calling Format, and with some verbs
	// follows pointers to structs and arrays. Equal keys compare equal with ==.
	raw unique.Handle[string]
}

// PublicKey is the public key of a WireGuard peer.
type PublicKey [keySize]byte

// NewPrivateKey generates a private key. The key is clamped, like the keys of wg genkey.
func NewPrivateKey() (PrivateKey, error) {
	var raw [keySize]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return PrivateKey{}, fmt.Errorf("generate a WireGuard key: %w", err)
	}
	raw[0] &= 248
	raw[31] = raw[31]&127 | 64
	return ParsePrivateKey(raw[:])
}

// ParsePrivateKey returns the private key in raw, which must have 32 bytes. It does not decode base64. Like WireGuard,
// it accepts a key that is not clamped. The error wraps ErrKey and reveals only the size of the key.
func ParsePrivateKey(raw []byte) (PrivateKey, error) {
	if err := checkSize("private", raw); err != nil {
		return PrivateKey{}, err
	}
	return PrivateKey{unique.Make(string(raw))}, nil
}

// ParsePublicKey returns the public key in raw, which must have 32 bytes. It does not decode base64. The error wraps
// ErrKey. ParsePublicKey rejects the few points of low order, because they allow no shared secret.
func ParsePublicKey(raw []byte) (PublicKey, error) {
	if err := checkSize("public", raw); err != nil {
		return PublicKey{}, err
	}
	anyone, err := NewPrivateKey()
	if err != nil {
		return PublicKey{}, err
	}
	public := PublicKey(raw)
	return public, anyone.agrees(public)
}

// Public returns the public key of k. If k is the zero value, so is the result.
func (k PrivateKey) Public() PublicKey {
	key := k.x25519()
	if key == nil {
		return PublicKey{}
	}
	return PublicKey(key.PublicKey().Bytes())
}

// Reveal returns the 32 bytes of the key, or nil if there is no key. Review every call.
func (k PrivateKey) Reveal() []byte {
	if k == (PrivateKey{}) {
		return nil
	}
	return []byte(k.raw.Value())
}

// x25519 returns the key in the type of crypto/ecdh, or nil if there is no key.
func (k PrivateKey) x25519() *ecdh.PrivateKey {
	key, err := ecdh.X25519().NewPrivateKey(k.Reveal())
	if err != nil { // wrong size: there is no key
		return nil
	}
	return key
}

// Format prints "(hidden)", whatever the verb.
func (k PrivateKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// MarshalText encodes "(hidden)".
func (k PrivateKey) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// String returns the key in base64, as wg shows it.
func (k PublicKey) String() string { return base64.StdEncoding.EncodeToString(k[:]) }

// agrees returns an error if the key and the peer's key allow no shared secret.
func (k PrivateKey) agrees(peer PublicKey) error {
	key := k.x25519()
	if key == nil {
		return fmt.Errorf("%w: the private key is missing", ErrKey)
	}
	if peer == k.Public() {
		return fmt.Errorf("%w: the peer's public key is the same as ours", ErrKey)
	}
	point, err := ecdh.X25519().NewPublicKey(peer[:])
	if err == nil {
		_, err = key.ECDH(point) // returns an error for points of low order, including zero
	}
	if err != nil {
		return fmt.Errorf("%w: the public key %s is a low-order point", ErrKey, peer)
	}
	return nil
}

// checkSize returns an error if a key has the wrong size. The error suggests a cause.
func checkSize(which string, raw []byte) error {
	var zero byte
	for _, b := range raw {
		zero |= b
	}
	what := ""
	switch _, text := base64.StdEncoding.DecodeString(string(raw)); {
	case len(raw) == keySize && zero != 0:
		return nil
	case len(raw) == keySize:
		return fmt.Errorf("%w: the %s key contains only zeros", ErrKey, which)
	case (len(raw) == base64Size || len(raw) == newlineSize) && text == nil:
		what = ", which are base64 text: the key was base64-encoded twice"
	case len(raw) == base64Size || len(raw) == pkcs8Size:
		what = ", the size of a key in DER: only its last 32 bytes are the key"
	}
	return fmt.Errorf("%w: the %s key has %d bytes, not %d%s", ErrKey, which, len(raw), keySize, what)
}
