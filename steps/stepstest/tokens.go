package stepstest

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"time"

	"carrick/cluster/bearer"
	"carrick/cluster/masked"
)

var token = regexp.MustCompile(`\$\{(token|jwt) ([^ }]+) ([^ }]+)(?: (\d+|[+-][^ }]+))?(?: ([^ }]+))?\}`)

// mint is like expand, but for the files of a host. The server accepts the tokens in them until they expire, like
// tokens that it issued on request.
func (s *server) mint(text string) string {
	for _, m := range token.FindAllStringSubmatch(text, -1) {
		made, err := jwt(m[2], m[3], m[4], m[5])
		if claims, bad := bearer.Parse(masked.New(made)); err == nil && bad == nil && !claims.Expired(time.Now()) {
			s.minted[made] = true
		}
	}
	return s.expand(text)
}

// jwt returns a token without a valid signature, which the fake accepts. exp is a Unix time or a duration from now,
// such as "+20h". life is the total validity. If life is "", the token has no start.
func jwt(namespace, name, exp, life string) (string, error) {
	claims := map[string]any{
		"iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:" + namespace + ":" + name,
	}
	at, err := ends(exp)
	if err != nil {
		return "", err
	}
	if !at.IsZero() {
		claims["exp"] = at.Unix()
	}
	if life != "" {
		d, err := time.ParseDuration(life)
		if err != nil {
			return "", err
		}
		claims["iat"] = at.Add(-d).Unix()
	}
	body, _ := json.Marshal(claims)
	return unsigned(body), nil
}

// start is the reference time of tokens. It is constant in a run, so that equal macros give equal tokens.
var start = time.Now()

func ends(exp string) (time.Time, error) {
	if exp == "" {
		return time.Time{}, nil
	}
	if unix, err := strconv.ParseInt(exp, 10, 64); err == nil && exp[0] != '+' && exp[0] != '-' {
		return time.Unix(unix, 0), nil
	}
	d, err := time.ParseDuration(exp)
	return start.Add(d), err
}

func unsigned(body []byte) string {
	enc := base64.RawURLEncoding
	return enc.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + enc.EncodeToString(body) + "." +
		enc.EncodeToString([]byte("stand-in"))
}

func subject(token string) string {
	claims, _ := bearer.Parse(masked.New(token))
	return claims.Subject
}
