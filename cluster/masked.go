package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"unique"
)

// hidden is shown in the place of a secret.
const hidden = "(hidden)"

// Masked is a secret value. However it is printed, logged or encoded, it says
// "(hidden)"; Reveal is the only way to the value. The zero value is empty.
// Masked values can be compared with ==.
type Masked struct {
	// a pointer that equals another when the values do: fmt prints the fields of
	// a struct in an unexported field without asking Format
	value unique.Handle[string]
}

// Mask hides a secret value.
func Mask(secret string) Masked {
	if secret == "" {
		return Masked{}
	}
	return Masked{value: unique.Make(secret)}
}

// Reveal returns the secret itself. Every call is a place to review.
func (m Masked) Reveal() string {
	if m.IsZero() {
		return ""
	}
	return m.value.Value()
}

// IsZero reports whether there is no value.
func (m Masked) IsZero() bool { return m == Masked{} }

// Hash tells two values apart without showing either: "sha256:" and the first
// 12 hexadecimal digits.
func (m Masked) Hash() string { return hashOf(m.Reveal()) }

// String returns "(hidden)".
func (m Masked) String() string { return hidden }

// GoString returns "(hidden)".
func (m Masked) GoString() string { return hidden }

// Format prints "(hidden)", whatever the verb.
func (m Masked) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// MarshalJSON encodes "(hidden)".
func (m Masked) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

// MarshalText encodes "(hidden)".
func (m Masked) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalYAML encodes "(hidden)".
func (m Masked) MarshalYAML() (any, error) { return hidden, nil }

// LogValue logs "(hidden)".
func (m Masked) LogValue() slog.Value { return slog.StringValue(hidden) }

// hashOf returns the Hash of a value that is not masked.
func hashOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:])[:12]
}
