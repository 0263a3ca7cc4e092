package renkuapi

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestTokensThatDoNotCount(t *testing.T) {
	s := newSite(t)
	part := base64.RawURLEncoding.EncodeToString
	good := strings.Split(s.admin, ".")
	unsigned := part([]byte(`{"alg":"none"}`)) + "." + good[1] + "."
	symmetric := part([]byte(`{"alg":"HS256"}`)) + "." + good[1]
	sum := sha256.Sum256([]byte(symmetric))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.realm.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	symmetric += "." + part(signature)
	forged := good[0] + "." +
		part([]byte(`{"aud":"renku-cli","exp":9999999999,"realm_access":{"roles":["renku-admin"]}}`)) + "." + good[2]
	for name, token := range map[string]string{
		"none": "", "no JWT": "x", "unsigned": unsigned, "HS256": symmetric, "forged": forged,
		"expired":          s.token(url.Values{"expires": {"-1"}}),
		"another audience": s.token(url.Values{"aud": {"account"}}),
	} {
		t.Run(name, func(t *testing.T) {
			for path, message := range map[string]string{
				"/clusters": "Please provide valid access credentials in the Authorization header.",
				"/user":     "You have to be authenticated to perform this operation.",
			} {
				if got := s.as(token, "GET", path, nil); got.status != 401 || got.code != 1401 || got.message != message {
					t.Errorf("GET %s: %d %s", path, got.status, got.body)
				}
			}
			if got := s.as(token, "GET", "/resource_pools", nil); got.status != 200 {
				t.Errorf("an anonymous caller lists pools: %d", got.status)
			}
		})
	}
}

func TestAudiences(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"renku", "renku-ui", "renku-cli", "swagger"} {
		if got := s.as(s.token(url.Values{"aud": {name}}), "GET", "/clusters", nil); got.status != 200 {
			t.Errorf("%s: %d", name, got.status)
		}
	}
}

func TestATokenExpires(t *testing.T) {
	s := newSite(t)
	s.must(200, "GET", "/clusters", nil)
	s.clock.advance(tokenLife)
	if got := s.call("GET", "/clusters", nil); got.status != 401 {
		t.Errorf("after 24 hours: %d", got.status)
	}
}

func TestWhoMayCallWhat(t *testing.T) {
	s := newSite(t)
	user := s.token(url.Values{"roles": {"offline_access,uma_authorization"}})
	tried := 0
	for _, r := range routes(&registry{}, &pools{}) {
		if r.who != admins {
			continue
		}
		tried++
		id := "1"
		if strings.HasPrefix(r.path, "/clusters") {
			id = "01J00000000000000000000000"
		}
		path := strings.Replace(r.path, "{id}", id, 1)
		if got := s.as("", r.method, path, nil); got.status != 401 || got.code != 1401 {
			t.Errorf("%s %s, anonymous: %d %d", r.method, path, got.status, got.code)
		}
		if got := s.as(user, r.method, path, nil); got.status != 403 || got.code != 1403 ||
			got.message != "You do not have the required permissions for this operation." {
			t.Errorf("%s %s, no admin: %d %s", r.method, path, got.status, got.body)
		}
	}
	if tried < 15 {
		t.Errorf("only %d routes are for admins", tried)
	}
}

func TestUser(t *testing.T) {
	s := newSite(t)
	if got := s.must(200, "GET", "/user", nil).object(t); got["is_admin"] != true || got["id"] != adminID ||
		got["username"] != "stand-in" {
		t.Errorf("%v", got)
	}
	if got := s.as(s.token(url.Values{"roles": {""}}), "GET", "/user", nil); got.object(t)["is_admin"] != false {
		t.Errorf("%s", got.body)
	}
}

func TestVersionAndSpecNeedNoToken(t *testing.T) {
	for _, row := range []struct {
		faults  []string
		version string
		known   bool
	}{{nil, versionNow, true}, {[]string{"old-renku"}, versionOld, false}} {
		s := newSite(t, row.faults...)
		if got := s.as("", "GET", "/version", nil); got.status != 200 || got.object(t)["version"] != row.version {
			t.Errorf("%s", got.body)
		}
		spec := s.as("", "GET", "/spec.json", nil).object(t)
		for _, name := range []string{"Cluster", "ClusterPatch", "ClusterWithId"} {
			schema := spec["components"].(object)["schemas"].(object)[name].(object)
			properties := schema["properties"].(object)
			_, flag := properties[tlsFlag]
			_, account := properties[accountName]
			if flag != row.known || account != row.known || properties["session_host"] == nil {
				t.Errorf("%v: %s has the flag %v, the account %v", row.faults, name, flag, account)
			}
			required, _ := schema["required"].([]any)
			if slices.Contains(required, any("config_name")) == (name == "ClusterPatch") {
				t.Errorf("%s requires %v", name, required)
			}
		}
	}
}
