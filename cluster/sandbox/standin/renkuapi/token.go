// How Renku's API reads access tokens (authn/keycloak.py KeycloakAuthenticator). They use RS256, their audience must be
// one of Renku's clients, and admins have the role renku-admin. A caller with an invalid or expired token is anonymous.
// The claims and roles in tokens of renku-cli are a guess: no source was found.

package renkuapi

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	tokenLife = 24 * time.Hour // access.token.lifespan of renku-cli in Renku's chart
	adminRole = "renku-admin"
	keyID     = "stand-in"
	adminID   = "6f2d1c1e-0000-4000-8000-000000000001" // ID of the user
)

// audiences lists the accepted audiences.
var audiences = []string{"renku", "renku-ui", "renku-cli", "swagger"}

// claims contains the claims that Renku's API reads.
type claims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience audience `json:"aud"`
	Issued   int64    `json:"iat"`
	Expires  int64    `json:"exp"` // seconds since 1970
	Type     string   `json:"typ"`
	Party    string   `json:"azp"`
	ID       string   `json:"jti"`
	Access   access   `json:"realm_access"`
	Username string   `json:"preferred_username"`
	Email    string   `json:"email"`
	First    string   `json:"given_name"`
	Last     string   `json:"family_name"`
}

type access struct {
	Roles []string `json:"roles"`
}

// audience is the claim aud. It is one name or a list of names.
type audience []string

func (a *audience) UnmarshalJSON(data []byte) error {
	one := ""
	if json.Unmarshal(data, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

func (c *claims) admin() bool { return c != nil && slices.Contains(c.Access.Roles, adminRole) }

// signer signs and verifies the tokens of a realm.
type signer struct {
	issuer string
	key    *rsa.PrivateKey
	now    func() time.Time
}

func newSigner(issuer string, now func() time.Time) (*signer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	return &signer{issuer: issuer, key: key, now: now}, err
}

// token returns a token for client that is valid for life.
func (s *signer) token(client, subject string, roles []string, life time.Duration) (string, error) {
	now := s.now()
	body, err := json.Marshal(claims{
		Issuer: s.issuer, Subject: subject, Audience: audience{client}, Party: client,
		Issued: now.Unix(), Expires: now.Add(life).Unix(), Type: "Bearer", ID: randomID(),
		Access: access{Roles: roles}, Username: "stand-in", Email: "stand-in@renku.invalid",
		First: "Stand-in", Last: "of Renku",
	})
	if err != nil {
		return "", err
	}
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT","kid":"` + keyID + `"}`))
	signed := head + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, sum[:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), err
}

var errToken = errors.New("not a valid token")

// check returns the claims of a valid token.
func (s *signer) check(token string) (*claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errToken
	}
	head := struct {
		Algorithm string `json:"alg"`
	}{}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || decodePart(parts[0], &head) != nil || head.Algorithm != "RS256" {
		return nil, errToken
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(&s.key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return nil, errToken
	}
	c := &claims{}
	if decodePart(parts[1], c) != nil || c.Expires <= s.now().Unix() {
		return nil, errToken
	}
	if !slices.ContainsFunc(c.Audience, func(a string) bool { return slices.Contains(audiences, a) }) {
		return nil, errToken
	}
	return c, nil
}

func decodePart(part string, out any) error {
	data, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// caller returns the caller of a request, or nil if it is anonymous.
func (s *signer) caller(r *http.Request) *claims {
	token := strings.TrimPrefix(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "bearer ")
	c, err := s.check(token)
	if err != nil {
		return nil
	}
	return c
}

// keySet returns the public key as a JSON Web Key Set.
func (s *signer) keySet() any {
	encode := base64.RawURLEncoding.EncodeToString
	return map[string]any{"keys": []any{map[string]any{
		"kid": keyID, "kty": "RSA", "alg": "RS256", "use": "sig",
		"n": encode(s.key.N.Bytes()), "e": encode(big.NewInt(int64(s.key.E)).Bytes()),
	}}}
}

// randomID returns a random UUID (version 4).
func randomID() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	const digits = "0123456789abcdef"
	text := []byte{}
	for i, b := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = append(text, digits[b>>4], digits[b&15])
	}
	return string(text)
}
