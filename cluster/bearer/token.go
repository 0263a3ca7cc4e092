package bearer

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"carrick/cluster/masked"
)

var (
	// errNotJWT means that the token has no readable claims. The token can still be valid.
	errNotJWT = errors.New("the token is not a JWT")
	// ErrDoubleBase64 means that a token is a base64-encoded JWT. API servers reject such a token.
	ErrDoubleBase64 = errors.New("the token is base64-encoded twice")
)

// Token contains the claims of a JWT. The claims are not verified, and the strings are untrusted.
type Token struct {
	Subject  string   // "system:serviceaccount:renku:carrick"
	Issuer   string   // "https://kubernetes.default.svc"
	Audience []string // nil if the token has none
	Method   string   // the signature algorithm from the header's "alg": "RS256"
	Roles    []string // Keycloak's realm roles (realm_access.roles); nil if the token has none
	// AccountUID is the UID of the ServiceAccount, which changes when the account is recreated. It is "" if the token
	// does not contain it.
	AccountUID string
	Expires    time.Time
	IssuedAt   time.Time // zero if the token has none
}

// ServiceAccount returns the ServiceAccount in the token's subject. ok is false if the subject is not a ServiceAccount.
func (t Token) ServiceAccount() (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(t.Subject, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != ""
}

// Expired reports whether the token has expired at now. A token without an expiry never expires.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// Parse reads the claims of a JWT. It does not verify the token. It returns ErrDoubleBase64 for a base64-encoded JWT.
// For any other string, the error describes what the string seems to be. No error contains a part of the token.
func Parse(token masked.Value) (Token, error) {
	text := token.Reveal()
	payload, method, ok := jwtPayload(text)
	if !ok {
		return Token{}, notJWT(text)
	}
	var claims map[string]json.RawMessage
	if err := json.Unmarshal(payload, &claims); err != nil || claims == nil {
		return Token{}, fmt.Errorf("%w: its second part is not a JSON object", errNotJWT)
	}
	t := Token{
		Method: method, Audience: audience(claims["aud"]), Expires: numericDate(claims["exp"]),
		IssuedAt: numericDate(claims["iat"]),
	}
	_ = json.Unmarshal(claims["sub"], &t.Subject)
	_ = json.Unmarshal(claims["iss"], &t.Issuer)
	t.AccountUID = accountUID(claims)
	var realm struct {
		Roles []string `json:"roles"`
	}
	if json.Unmarshal(claims["realm_access"], &realm) == nil {
		t.Roles = realm.Roles
	}
	return t, nil
}

// jwtPayload decodes a JWT in the compact serialization of RFC 7515. It returns the payload, and the signature
// algorithm from the header. ok is false if the string does not consist of three parts or the first part is not a JWT
// header.
func jwtPayload(text string) (payload []byte, method string, ok bool) {
	parts := strings.Split(text, ".")
	// Reject line breaks here, because Go's base64 decoder ignores them.
	if len(parts) != 3 || parts[2] == "" || strings.ContainsAny(text, "\r\n") {
		return nil, "", false
	}
	head, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return nil, "", false
	}
	var header map[string]json.RawMessage
	if json.Unmarshal(head, &header) != nil || header["alg"] == nil {
		return nil, "", false
	}
	if _, err := base64.RawURLEncoding.DecodeString(parts[2]); err != nil {
		return nil, "", false
	}
	_ = json.Unmarshal(header["alg"], &method)
	payload, err = base64.RawURLEncoding.DecodeString(parts[1])
	return payload, method, err == nil
}

func notJWT(text string) error {
	if inner, ok := decodeBase64(text); ok {
		if _, _, ok := jwtPayload(strings.TrimSpace(string(inner))); ok {
			return ErrDoubleBase64
		}
	}
	trimmed := strings.TrimSpace(text)
	if trimmed != text {
		if _, _, ok := jwtPayload(trimmed); ok {
			return fmt.Errorf("%w: it has leading or trailing white space", errNotJWT)
		}
	}
	name, _, hasColon := strings.Cut(trimmed, ":")
	switch {
	case trimmed == "":
		return fmt.Errorf("%w: it is empty", errNotJWT)
	case hasColon && (strings.HasPrefix(name, "token-") || strings.HasPrefix(name, "kubeconfig-")):
		return fmt.Errorf("%w: it looks like an API key of Rancher, which may expire there", errNotJWT)
	case strings.HasPrefix(trimmed, "sha256~"):
		return fmt.Errorf("%w: it looks like a session token of OpenShift, which expires", errNotJWT)
	}
	return errNotJWT
}

// decodeBase64 decodes base64 in the standard or the URL alphabet. Padding is optional, and white space is ignored.
func decodeBase64(text string) ([]byte, bool) {
	packed := strings.TrimRight(strings.Join(strings.Fields(text), ""), "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if data, err := encoding.DecodeString(packed); err == nil && len(data) > 0 {
			return data, true
		}
	}
	return nil, false
}

// accountUID returns the ServiceAccount's UID. It supports the claims of the TokenRequest API and those of token
// Secrets.
func accountUID(claims map[string]json.RawMessage) string {
	var bound struct {
		ServiceAccount struct {
			UID string `json:"uid"`
		} `json:"serviceaccount"`
	}
	if json.Unmarshal(claims["kubernetes.io"], &bound) == nil && bound.ServiceAccount.UID != "" {
		return bound.ServiceAccount.UID
	}
	var uid string
	_ = json.Unmarshal(claims["kubernetes.io/serviceaccount/service-account.uid"], &uid)
	return uid
}

// audience decodes the aud claim, which is a string or a list of strings.
func audience(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		return nil
	}
	return many
}

// numericDate decodes a Unix time in seconds, which can have a fraction. For any other value it returns the zero time.
func numericDate(raw json.RawMessage) time.Time {
	var seconds float64
	if raw == nil || json.Unmarshal(raw, &seconds) != nil || seconds <= 0 || seconds > 1<<40 {
		return time.Time{}
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)).UTC()
}
