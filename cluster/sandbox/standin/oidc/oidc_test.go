package oidc

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func start(t *testing.T, o Options) (*Provider, *http.Client) {
	t.Helper()
	p, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.CA)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	t.Cleanup(client.CloseIdleConnections)
	return p, client
}

func TestDiscoveryNamesTheIssuer(t *testing.T) {
	p, client := start(t, Options{})
	r, err := client.Get(p.Issuer + "/.well-known/openid-configuration")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var said map[string]any
	if err := json.NewDecoder(r.Body).Decode(&said); err != nil || said["issuer"] != p.Issuer {
		t.Errorf("%v, %v", said, err)
	}
	for _, path := range []string{"/auth" + realm, realm + "/protocol/openid-connect/token"} {
		r, err := client.Get(strings.TrimSuffix(p.Issuer, realm) + path + "/.well-known/openid-configuration")
		if err != nil {
			t.Fatal(err)
		}
		if r.Body.Close(); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
}

func TestWhoMaySignIn(t *testing.T) {
	for _, tc := range []struct {
		situation, form, wants string
		o                      Options
	}{
		{
			"a user", "grant_type=password&username=alice&password=x&client_id=ondemand&client_secret=stand-in-client-secret",
			`"aud":["kubernetes","account"]`,
			Options{Users: []string{"alice"}},
		},
		{
			"a refresh token",
			"grant_type=refresh_token&refresh_token=stand-in:alice&client_id=ondemand&client_secret=stand-in-client-secret",
			`"preferred_username":"alice"`,
			Options{Users: []string{"alice"}},
		},
		{
			"no audience mapper",
			"grant_type=password&username=alice&password=x&client_id=ondemand&client_secret=stand-in-client-secret",
			`"aud":["account"]`,
			Options{Users: []string{"alice"}},
		},
		{
			"a made-up refresh token",
			"grant_type=refresh_token&refresh_token=stand-in:mallory&client_id=ondemand&client_secret=stand-in-client-secret",
			"Invalid refresh token",
			Options{Users: []string{"alice"}},
		},
		{
			"a stranger",
			"grant_type=password&username=mallory&password=x&client_id=ondemand&client_secret=stand-in-client-secret",
			"invalid_grant",
			Options{Users: []string{"alice"}},
		},
		{
			"no password", "grant_type=password&username=alice&client_id=ondemand&client_secret=stand-in-client-secret",
			"invalid_grant",
			Options{Users: []string{"alice"}},
		},
		{
			"another secret", "grant_type=password&username=alice&password=x&client_id=ondemand&client_secret=changeme",
			"unauthorized_client",
			Options{Users: []string{"alice"}},
		},
		{
			"another flow", "grant_type=client_credentials&client_id=ondemand&client_secret=stand-in-client-secret",
			"unsupported_grant_type",
			Options{},
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			p, client := start(t, tc.o)
			if tc.situation == "no audience mapper" {
				p.DropAudience()
			}
			form, _ := url.ParseQuery(tc.form)
			r, err := client.PostForm(strings.TrimSuffix(p.Issuer, realm)+endpoints+"/token", form)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			body, _ := io.ReadAll(r.Body)
			text := string(body)
			var tokens struct {
				Access string `json:"access_token"`
			}
			if json.Unmarshal(body, &tokens) == nil && tokens.Access != "" {
				claims, err := base64.RawURLEncoding.DecodeString(strings.Split(tokens.Access, ".")[1])
				if err != nil {
					t.Fatal(err)
				}
				text = string(claims)
			}
			if !strings.Contains(text, tc.wants) {
				t.Errorf("%s does not have %s", text, tc.wants)
			}
		})
	}
}

func TestIDTokenIsForTheClient(t *testing.T) {
	const login = "grant_type=password&username=alice&password=x&client_id=ondemand&client_secret=stand-in-client-secret"
	const again = "grant_type=refresh_token&refresh_token=stand-in:alice&client_id=ondemand&client_secret=stand-in-client-secret"
	for _, tc := range []struct {
		situation, form, wants string // "": no ID token
		unmapped               bool
	}{
		{"a login without the scope openid", login, "", false},
		{"a login", login + "&scope=openid+profile", `"aud":["kubernetes","ondemand"]`, false},
		{"a refresh token", again, `"aud":["kubernetes","ondemand"]`, false},
		{"no audience mapper", again, `"aud":["ondemand"]`, true},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			p, client := start(t, Options{Users: []string{"alice"}})
			if tc.unmapped {
				p.DropAudience()
			}
			form, _ := url.ParseQuery(tc.form)
			r, err := client.PostForm(strings.TrimSuffix(p.Issuer, realm)+endpoints+"/token", form)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			var tokens struct {
				ID string `json:"id_token"`
			}
			if err := json.NewDecoder(r.Body).Decode(&tokens); err != nil {
				t.Fatal(err)
			}
			if tc.wants == "" || tokens.ID == "" {
				if tc.wants != tokens.ID {
					t.Errorf("ID token %q", tokens.ID)
				}
				return
			}
			claims, err := base64.RawURLEncoding.DecodeString(strings.Split(tokens.ID, ".")[1])
			if err != nil || !strings.Contains(string(claims), tc.wants) || !strings.Contains(string(claims), `"typ":"ID"`) {
				t.Errorf("%s, %v", claims, err)
			}
		})
	}
}
