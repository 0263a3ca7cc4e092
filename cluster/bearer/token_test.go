package bearer

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/masked"
)

// jwt returns an unsigned JWT with the given claims.
func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256","kid":"x"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}

const forever = `{"iss":"kubernetes/serviceaccount","sub":"system:serviceaccount:renku:carrick"}`

func TestParseToken(t *testing.T) {
	long := base64.StdEncoding.EncodeToString([]byte(jwt(forever)))
	for _, tc := range []struct {
		situation, token string
		want             Token
		err              error
		words            string
	}{
		{
			situation: "a token that never ends", token: jwt(forever),
			want: Token{Subject: "system:serviceaccount:renku:carrick", Issuer: "kubernetes/serviceaccount"},
		},
		{
			situation: "a token that ends", token: jwt(`{"sub":"a","aud":["api","x"],"exp":1700003600,"iat":1700000000.5}`),
			want: Token{
				Subject: "a", Audience: []string{"api", "x"},
				Expires: time.Unix(1700003600, 0).UTC(), IssuedAt: time.Unix(1700000000, 5e8).UTC(),
			},
		},
		{situation: "one audience", token: jwt(`{"aud":"api"}`), want: Token{Audience: []string{"api"}}},
		{
			situation: "Keycloak's roles", token: jwt(`{"realm_access":{"roles":["a","b"]}}`),
			want: Token{Roles: []string{"a", "b"}},
		},
		{situation: "roles of another type", token: jwt(`{"realm_access":{"roles":"a"}}`)},
		{situation: "claims of other types", token: jwt(`{"sub":7,"aud":{"x":1},"exp":"soon"}`)},
		{situation: "claims in other letters don't count", token: jwt(`{"SUB":"a","Exp":1}`)},
		{situation: "base64 twice", token: long, err: ErrDoubleBase64},
		{situation: "base64 twice, in lines", token: long[:60] + "\n" + long[60:] + "\n", err: ErrDoubleBase64},
		{situation: "a line's end after it", token: jwt(forever) + "\n", err: errNotJWT, words: "white space"},
		{situation: "nothing", err: errNotJWT, words: "empty"},
		{situation: "Rancher's API key", token: "kubeconfig-u-abcde:secretpart", err: errNotJWT, words: "Rancher"},
		{situation: "Rancher's other API key", token: "token-xxxxx:secretpart", err: errNotJWT, words: "Rancher"},
		{situation: "OpenShift's session", token: "sha256~secretpart", err: errNotJWT, words: "OpenShift"},
		{situation: "an opaque token", token: "secretpart", err: errNotJWT},
		{situation: "two dots alone", token: "a.b.c", err: errNotJWT},
		{situation: "no signature", token: "e30.e30.", err: errNotJWT},
		{situation: "claims that are a list", token: jwt(`["secretpart"]`), err: errNotJWT, words: "not a JSON object"},
		{situation: "claims that are null", token: jwt(`null`), err: errNotJWT},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			got, err := Parse(masked.New(tc.token))
			if !errors.Is(err, tc.err) || (err != nil) != (tc.err != nil) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.words) || strings.Contains(err.Error(), "secretpart")) {
				t.Errorf("error %q", err)
			}
			if err == nil {
				tc.want.Method = "RS256" // of every token here
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTokenServiceAccount(t *testing.T) {
	for subject, want := range map[string]string{
		"system:serviceaccount:renku:carrick": "renku carrick true",
		"system:serviceaccount:renku":         "renku  false",
		"jane":                                "  false",
	} {
		namespace, name, ok := Token{Subject: subject}.ServiceAccount()
		if got := fmt.Sprint(namespace, " ", name, " ", ok); got != want {
			t.Errorf("%s: got %q, want %q", subject, got, want)
		}
	}
}

func TestTokenExpired(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		situation string
		expires   time.Time
		want      bool
	}{
		{"never ends", time.Time{}, false},
		{"ends later", now.Add(time.Second), false},
		{"ends now", now, true},
		{"has ended", now.Add(-time.Second), true},
	} {
		if got := (Token{Expires: tc.expires}).Expired(now); got != tc.want {
			t.Errorf("%s: got %v", tc.situation, got)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(jwt(forever))
	f.Add(jwt(`{"exp":1e300,"iat":-1,"aud":[1]}`))
	f.Add(base64.StdEncoding.EncodeToString([]byte(jwt(forever))))
	f.Add("token-xxxxx:yyyy")
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := Parse(masked.New(text))
		if err != nil && !errors.Is(err, errNotJWT) && !errors.Is(err, ErrDoubleBase64) {
			t.Fatalf("error %v", err)
		}
		if _, err := json.Marshal(token); err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
	})
}
