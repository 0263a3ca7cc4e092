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

// Hidden is the text that replaces a secret in output.
const Hidden = "(hidden)"

// Value is a secret value. It is printed, logged and encoded as "(hidden)". Only Reveal returns the secret. The zero
// value is empty. Values can be compared with ==.
type Value struct {
	// Equal values have equal handles. A handle is a pointer. The field must be a pointer, because fmt does not call
	// Format for a value in an unexported field and would print a string.
	value unique.Handle[string]
}

// New returns the masked value of secret.
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

// IsZero reports whether the value is empty.
func (m Value) IsZero() bool { return m == Value{} }

// Hash returns "sha256:" and the first 12 hexadecimal digits of the value's SHA-256 hash. It identifies the value
// without revealing it.
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
