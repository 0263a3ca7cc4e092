package masked

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"unique"
)

// Hidden replaces a secret in output.
const Hidden = "(hidden)"

// Value is a secret value. It is printed, logged and encoded as "(hidden)"; only Reveal returns the value. The zero
// value is empty. Values can be compared with ==.
type Value struct {
	// Equal values have equal handles. The handle is a pointer, because fmt prints the fields of a struct in an unexported
	// field without calling Format.
	value unique.Handle[string]
}

// New hides a secret value.
func New(secret string) Value {
	if secret == "" {
		return Value{}
	}
	return Value{value: unique.Make(secret)}
}

// Reveal returns the secret. Review every call.
func (m Value) Reveal() string {
	if m.IsZero() {
		return ""
	}
	return m.value.Value()
}

// IsZero reports whether there is no value.
func (m Value) IsZero() bool { return m == Value{} }

// Hash identifies a value without revealing it: "sha256:" and the first 12 hexadecimal digits.
func (m Value) Hash() string { return Hash(m.Reveal()) }

// String returns "(hidden)".
func (m Value) String() string { return Hidden }

// GoString returns "(hidden)".
func (m Value) GoString() string { return Hidden }

// Format prints "(hidden)", whatever the verb.
func (m Value) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Hidden) }

// MarshalJSON encodes "(hidden)".
func (m Value) MarshalJSON() ([]byte, error) { return json.Marshal(Hidden) }

// MarshalText encodes "(hidden)".
func (m Value) MarshalText() ([]byte, error) { return []byte(Hidden), nil }

// MarshalYAML encodes "(hidden)".
func (m Value) MarshalYAML() (any, error) { return Hidden, nil }

// LogValue logs "(hidden)".
func (m Value) LogValue() slog.Value { return slog.StringValue(Hidden) }

// Hash returns the hash of a value that is not masked, in the format of Value.Hash.
func Hash(value string) string {
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:])[:12]
}
