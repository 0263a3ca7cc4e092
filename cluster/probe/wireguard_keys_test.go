package probe

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestParseKeys(t *testing.T) {
	key := wgKey(t)
	text := base64.StdEncoding.EncodeToString(key.Reveal())
	foreign, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(foreign)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(foreign.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	one := make([]byte, keySize)
	one[0] = 1
	for _, tc := range []struct {
		situation       string
		raw             []byte
		private, public string // what the errors must say; "": no error
	}{
		{"32 bytes", key.Reveal(), "", ""},
		{"32 bytes, not clamped", bytes.Repeat([]byte{0xff}, keySize), "", ""},
		{"nothing", nil, "the private key has 0 bytes, not 32", "the public key has 0 bytes, not 32"},
		{"a byte too few", key.Reveal()[1:], "has 31 bytes, not 32", "has 31 bytes, not 32"},
		{"all zero", make([]byte, keySize), "only zeros", "only zeros"},
		{"encoded twice", []byte(text), "44 bytes, not 32, which are base64 text", "44 bytes, not 32, which are base64 text"},
		{"encoded twice, with a newline", []byte(text + "\n"), "45 bytes, not 32, which are base64 text", "45 bytes"},
		{"a private key in DER", private, "48 bytes, not 32, the size of a key in DER", "DER"},
		{"a public key in DER", public, "DER", "44 bytes, not 32, the size of a key in DER"},
		{"a point of low order", one, "", "low-order"},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			_, err := ParsePrivateKey(tc.raw)
			says(t, err, tc.private)
			if err != nil && strings.Contains(err.Error(), text) {
				t.Error("the error shows the private key")
			}
			_, err = ParsePublicKey(tc.raw)
			says(t, err, tc.public)
		})
	}
}

func says(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("error %v, want none", err)
	case want != "" && (!errors.Is(err, ErrKey) || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want an ErrKey with %q", err, want)
	}
}

// The keys of RFC 7748, section 6.1. They are not clamped, and WireGuard accepts them unchanged.
func TestPublicOfPrivate(t *testing.T) {
	for private, public := range map[string]string{
		"77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a": "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
		"5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb": "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
	} {
		raw, err := hex.DecodeString(private)
		if err != nil {
			t.Fatal(err)
		}
		key, err := ParsePrivateKey(raw)
		if err != nil {
			t.Fatal(err)
		}
		got := key.Public()
		if hex.EncodeToString(got[:]) != public || !bytes.Equal(key.Reveal(), raw) {
			t.Errorf("got %x, want %s", got, public)
		}
	}
	if got := (PrivateKey{}).Public(); got != (PublicKey{}) {
		t.Errorf("no key has the public key %s", got)
	}
}

func TestNewPrivateKey(t *testing.T) {
	a, b := wgKey(t), wgKey(t)
	if bytes.Equal(a.Reveal(), b.Reveal()) {
		t.Error("the same key twice")
	}
	for _, k := range []PrivateKey{a, b} {
		if raw := k.Reveal(); raw[0]&7 != 0 || raw[31]&0xc0 != 0x40 {
			t.Errorf("the bits of byte 0 and 31 are %08b and %08b: not clamped", raw[0]&7, raw[31]&0xc0)
		}
	}
}

func TestPrivateKeyHides(t *testing.T) {
	key := wgKey(t)
	type holder struct{ key PrivateKey }
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("a key", "key", key)
	slog.New(slog.NewTextHandler(&log, nil)).Info("a key", "key", key, "in", holder{key})
	coded, err := json.Marshal(map[string]any{"key": key})
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{log.String(), string(coded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		shown = append(
			shown, fmt.Sprintf(verb, key), fmt.Sprintf(verb, &key), fmt.Sprintf(verb, holder{key}),
			fmt.Sprintf(verb, []any{key, holder{key}}),
		)
	}
	raw := key.Reveal()
	for _, text := range shown {
		for _, form := range []string{
			hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw), string(raw), strings.Trim(fmt.Sprint(raw), "[]"),
		} {
			if strings.Contains(strings.ToLower(text), form) || strings.Contains(text, form) {
				t.Errorf("the key is in %q", text)
			}
		}
	}
	if !strings.Contains(string(coded), hidden) || fmt.Sprint(key) != hidden {
		t.Errorf("got %s and %s", coded, key)
	}
}
