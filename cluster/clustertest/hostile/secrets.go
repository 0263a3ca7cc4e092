package hostile

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// leastSecret is the minimum length of a secret in bytes. Shorter strings could match by chance.
const leastSecret = 16

// Seeker searches output for secrets. It also finds encoded forms of them and parts of them.
type Seeker struct{ forms []form }

type form struct {
	name, how string
	bytes     []byte
}

// Len returns the number of strings that Find searches for: the secrets, their encodings and their parts.
func (s *Seeker) Len() int { return len(s.forms) }

// Add adds a secret to search for. It returns an error for a secret shorter than leastSecret. If a secret is long or
// has several lines, Find also reports parts of it. For a PEM private key, Find ignores parts with only the public key,
// because the certificate and the CSR contain the public key as well.
func (s *Seeker) Add(name, secret string) error {
	if len(secret) < leastSecret {
		return fmt.Errorf("%s: a secret of %d characters is too short for this test", name, len(secret))
	}
	var public []string
	if der := publicPart(secret); der != nil {
		public = encoded(string(der))
	}
	for _, part := range parts(secret) {
		if slices.ContainsFunc(public, func(text string) bool { return strings.Contains(text, part) }) {
			continue
		}
		s.add(name, "plain", part)
		s.add(name, "hex", hex.EncodeToString([]byte(part)))
		s.add(name, "HEX", strings.ToUpper(hex.EncodeToString([]byte(part))))
		s.add(name, "of a URL", url.QueryEscape(part))
		if quoted, err := json.Marshal(part); err == nil {
			s.add(name, "of JSON", strings.Trim(string(quoted), `"`))
		}
		for _, once := range encoded(part) {
			s.add(name, "base64", once)
			for _, twice := range encoded(once) {
				s.add(name, "base64 of base64", twice)
			}
		}
	}
	return nil
}

func (s *Seeker) add(name, how, text string) {
	for _, f := range s.forms {
		if string(f.bytes) == text {
			return
		}
	}
	s.forms = append(s.forms, form{name, how, []byte(text)})
}

// parts returns the parts of a secret to search for, because a screen can show only a part of a long secret.
func parts(secret string) []string {
	const size = 32
	out := []string{}
	for _, line := range strings.FieldsFunc(secret, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.HasPrefix(line, "-----") || len(line) < leastSecret {
			continue // the header and footer of a PEM block are not secret
		}
		if len(line) <= 2*size {
			out = append(out, line)
			continue
		}
		out = append(out, line[len(line)/2:len(line)/2+size], line[len(line)-size:])
	}
	if len(out) == 0 {
		out = append(out, secret)
	}
	return out
}

// publicPart returns the DER public key of a PEM private key, or nil for any other text.
func publicPart(secret string) []byte {
	block, _ := pem.Decode([]byte(secret))
	if block == nil {
		return nil
	}
	var key any
	var err error
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKCS8PrivateKey,
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
	} {
		if key, err = parse(block.Bytes); err == nil {
			break
		}
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil
	}
	return public
}

// encoded returns the base64 encodings of a string that is part of longer data. The encoding depends on the string's
// offset in the data, so there is a result for each offset modulo 3. Each result has only the characters that do not
// depend on the surrounding data.
func encoded(text string) []string {
	var out []string
	for shift, skip := range []int{0, 2, 3} {
		padded := append(make([]byte, shift), text...)
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all := e.EncodeToString(padded)
			end := len(all)
			if len(padded)%3 != 0 {
				end--
			}
			if core := all[skip:end]; len(out) == 0 || out[len(out)-1] != core {
				out = append(out, core)
			}
		}
	}
	return out
}

// Find returns the names of the secrets in data, each with the form in which it occurs, or nil if there are none. It
// searches data unchanged, and again without line wraps, frames and colors.
func (s *Seeker) Find(data []byte) []string {
	var out []string
	seen := map[string]bool{}
	for _, look := range [][]byte{data, squeezed(data)} {
		for _, f := range s.forms {
			if what := f.name + " (" + f.how + ")"; !seen[what] && bytes.Contains(look, f.bytes) {
				seen[what] = true
				out = append(out, what)
			}
		}
	}
	return out
}

// squeezed returns data without white space, escape sequences and frames.
func squeezed(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for _, r := range string(withoutSequences(data)) {
		if !unicode.IsSpace(r) && !unicode.IsControl(r) && (r < 0x2500 || r > 0x257f) && r != unicode.ReplacementChar {
			out = append(out, string(r)...)
		}
	}
	return out
}

// withoutSequences removes control sequences, which start with ESC [ and end with a letter.
func withoutSequences(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] != 0x1b || i+1 >= len(data) || data[i+1] != '[' {
			out = append(out, data[i])
			continue
		}
		for i += 2; i < len(data) && (data[i] < 0x40 || data[i] > 0x7e); i++ {
		}
	}
	return out
}
