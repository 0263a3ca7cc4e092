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

// ErrKey says that bytes are no WireGuard key, or that two keys can't be a pair of peers.
var ErrKey = errors.New("not a usable WireGuard key")

// keySize is the size of either key, in bytes (RFC 7748, section 5).
const keySize = 32

// The sizes that a key has which was stored the wrong way.
const (
	base64Size  = 44 // the base64 text of a key; the DER form of a public key (RFC 8410) is as long
	pkcs8Size   = 48 // the DER form of a private key
	newlineSize = 45 // the base64 text and the newline that wg genkey prints
)

const hidden = "(hidden)"

// PrivateKey is the private key of a WireGuard peer. However it is printed, logged or encoded, it says "(hidden)";
// Reveal is the only way to the key. The zero value is no key.
type PrivateKey struct {
	// A pointer to a string, as fmt prints unexported fields without asking Format, and with some verbs follows pointers
	// to structs and arrays. Equal keys are equal by ==.
	raw unique.Handle[string]
}

// PublicKey is the public key of a WireGuard peer.
type PublicKey [keySize]byte

// NewPrivateKey makes a private key, clamped as wg genkey clamps it.
func NewPrivateKey() (PrivateKey, error) {
	var raw [keySize]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return PrivateKey{}, fmt.Errorf("make a WireGuard key: %w", err)
	}
	raw[0] &= 248
	raw[31] = raw[31]&127 | 64
	return ParsePrivateKey(raw[:])
}

// ParsePrivateKey takes the 32 bytes of a private key, not their base64 text. A key that is not clamped is taken as it
// is, as WireGuard does. The error is an ErrKey and says nothing of the key but its size.
func ParsePrivateKey(raw []byte) (PrivateKey, error) {
	if err := checkSize("private", raw); err != nil {
		return PrivateKey{}, err
	}
	return PrivateKey{unique.Make(string(raw))}, nil
}

// ParsePublicKey takes the 32 bytes of a public key, not their base64 text. The error is an ErrKey. The few points with
// which nothing secret can be agreed on are no keys.
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

// Public returns the public key that belongs to k; of no key, the zero value.
func (k PrivateKey) Public() PublicKey {
	key := k.x25519()
	if key == nil {
		return PublicKey{}
	}
	return PublicKey(key.PublicKey().Bytes())
}

// Reveal returns the 32 bytes of the key itself, nil of no key. Every call is a place to review.
func (k PrivateKey) Reveal() []byte {
	if k == (PrivateKey{}) {
		return nil
	}
	return []byte(k.raw.Value())
}

// x25519 is the key for agreeing on secrets; nil for no key.
func (k PrivateKey) x25519() *ecdh.PrivateKey {
	key, err := ecdh.X25519().NewPrivateKey(k.Reveal())
	if err != nil { // the size is not right: there is no key
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

// agrees says whether a secret can be agreed on with the holder of peer.
func (k PrivateKey) agrees(peer PublicKey) error {
	key := k.x25519()
	if key == nil {
		return fmt.Errorf("%w: there is no private key", ErrKey)
	}
	if peer == k.Public() {
		return fmt.Errorf("%w: the peer's public key is our own", ErrKey)
	}
	point, err := ecdh.X25519().NewPublicKey(peer[:])
	if err == nil {
		_, err = key.ECDH(point) // fails on the points of low order, zero among them
	}
	if err != nil {
		return fmt.Errorf("%w: the public key %s is a point of low order", ErrKey, peer)
	}
	return nil
}

// checkSize says what is wrong with the size of a key, and what may have happened to it.
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
		return fmt.Errorf("%w: the %s key is all zero", ErrKey, which)
	case (len(raw) == base64Size || len(raw) == newlineSize) && text == nil:
		what = ", which are base64 text: the key was encoded once more than it should be"
	case len(raw) == base64Size || len(raw) == pkcs8Size:
		what = ", the size of a key in DER: only its last 32 bytes are the key"
	}
	return fmt.Errorf("%w: the %s key has %d bytes, not %d%s", ErrKey, which, len(raw), keySize, what)
}
