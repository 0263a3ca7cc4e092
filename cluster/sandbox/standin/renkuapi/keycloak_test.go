package renkuapi

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// signIn is the response that starts a device flow.
type signIn struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	Page       string `json:"verification_uri"`
	Complete   string `json:"verification_uri_complete"`
	Expires    int    `json:"expires_in"`
	Interval   int    `json:"interval"`
}

// oauth is a response of the token endpoint.
type oauth struct {
	Error   string
	Token   string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
}

func (s *site) signIn() signIn {
	s.t.Helper()
	d := signIn{}
	if got := s.form(
		realmPath+"/protocol/openid-connect/auth/device", url.Values{"client_id": {"renku-cli"}}, &d,
	); got != 200 {
		s.t.Fatalf("the device endpoint answers %d", got)
	}
	return d
}

func (s *site) poll(d signIn) (int, oauth) {
	s.t.Helper()
	got := oauth{}
	status := s.form(realmPath+"/protocol/openid-connect/token", url.Values{
		"client_id": {"renku-cli"}, "grant_type": {deviceGrant}, "device_code": {d.DeviceCode},
	}, &got)
	return status, got
}

func (s *site) wantPoll(d signIn, status int, name string) oauth {
	s.t.Helper()
	gotStatus, got := s.poll(d)
	if gotStatus != status || got.Error != name {
		s.t.Errorf("%d %q, want %d %q", gotStatus, got.Error, status, name)
	}
	return got
}

func TestDeviceFlowApprovesByItself(t *testing.T) {
	s := newSite(t)
	d := s.signIn()
	if !strings.HasPrefix(d.UserCode, "STAND-IN-") || d.Page != "https://"+s.Domain()+realmPath+"/device" ||
		!strings.HasSuffix(d.Complete, d.UserCode) || d.Expires != 600 || d.Interval != 1 {
		t.Errorf("%+v", d)
	}
	s.wantPoll(d, 400, "authorization_pending")
	s.wantPoll(d, 400, "slow_down")
	s.clock.advance(time.Second)
	s.wantPoll(d, 400, "authorization_pending")
	s.clock.advance(2 * time.Second)
	got := s.wantPoll(d, 200, "")
	if got.Type != "Bearer" || got.Expires != 86400 {
		t.Errorf("%+v", got)
	}
	claims := claims{}
	if err := decodePart(strings.Split(got.Token, ".")[1], &claims); err != nil {
		t.Fatal(err)
	}
	if claims.Issuer != "https://"+s.Domain()+realmPath || len(claims.Audience) != 1 ||
		claims.Audience[0] != "renku-cli" ||
		claims.Expires-claims.Issued != 86400 || !claims.admin() {
		t.Errorf("%+v", claims)
	}
	if got := s.as(got.Token, "GET", "/clusters", nil); got.status != 200 {
		t.Errorf("the API answers the token with %d", got.status)
	}
	s.wantPoll(d, 400, "invalid_grant")
}

func (s *site) page(method, address string, values url.Values) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, address, strings.NewReader(values.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestDeviceFlowWhenSomebodyDecides(t *testing.T) {
	s := newSite(t)
	for decision, want := range map[string]string{"approve": "", "deny": "access_denied"} {
		d := s.signIn()
		if status, body := s.page("GET", d.Complete, nil); status != 200 || !strings.Contains(body, "stand-in") ||
			!strings.Contains(body, d.UserCode) {
			t.Errorf("the page: %d %s", status, body)
		}
		s.clock.advance(time.Minute) // who has opened the page decides
		s.wantPoll(d, 400, "authorization_pending")
		if status, _ := s.page("POST", d.Page, url.Values{"user_code": {d.UserCode}, "decision": {decision}}); status != 200 {
			t.Errorf("%s: %d", decision, status)
		}
		s.clock.advance(time.Second)
		status := 400
		if want == "" {
			status = 200
		}
		s.wantPoll(d, status, want)
	}
	if status, body := s.page("GET", "https://"+s.Domain()+realmPath+"/device?user_code=%3Cb%3E", nil); status != 200 ||
		!strings.Contains(body, "input name") {
		t.Errorf("the page without a code: %d %s", status, body)
	}
	if status, _ := s.page(
		"POST", "https://"+s.Domain()+realmPath+"/device", url.Values{"user_code": {"X"}, "decision": {"approve"}},
	); status != 400 {
		t.Errorf("a code that nobody has: %d", status)
	}
}

func TestDeviceCodeExpires(t *testing.T) {
	s := newSite(t)
	d := s.signIn()
	s.clock.advance(deviceLife + time.Second)
	s.wantPoll(d, 400, "expired_token")
	s.wantPoll(d, 400, "invalid_grant")
}

func TestKeycloakRefuses(t *testing.T) {
	s := newSite(t)
	device, token := realmPath+"/protocol/openid-connect/auth/device", realmPath+"/protocol/openid-connect/token"
	for _, row := range []struct {
		name, path string
		form       url.Values
		status     int
		want       string
	}{
		{"a client without the flow", device, url.Values{"client_id": {"renku-jupyterserver"}}, 400, "unauthorized_client"},
		{"a client that is not there", device, url.Values{"client_id": {"carrick"}}, 401, "invalid_client"},
		{"no client", device, url.Values{}, 401, "invalid_client"},
		{
			"another client's token", token,
			url.Values{"client_id": {"renku"}, "grant_type": {deviceGrant}},
			401,
			"invalid_client",
		},
		{
			"another grant", token,
			url.Values{"client_id": {"renku-cli"}, "grant_type": {"password"}},
			400,
			"unsupported_grant_type",
		},
		{"no device code", token, url.Values{"client_id": {"renku-cli"}, "grant_type": {deviceGrant}}, 400, "invalid_grant"},
		{"another realm's path", realmPath + "/nothing", url.Values{}, 404, "HTTP 404 Not Found"},
		{"a life that is no number", "/stand-in/token", url.Values{"expires": {"soon"}}, 400, "invalid_request"},
	} {
		got := oauth{}
		if status := s.form(row.path, row.form, &got); status != row.status || got.Error != row.want || got.Token != "" {
			t.Errorf("%s: %d %+v", row.name, status, got)
		}
	}
}

func TestDiscovery(t *testing.T) {
	s := newSite(t)
	issuer := "https://" + s.Domain() + realmPath
	status, body := s.page("GET", issuer+"/.well-known/openid-configuration", nil)
	if status != 200 {
		t.Fatalf("%d", status)
	}
	for _, want := range []string{
		`"issuer":"` + issuer + `"`, issuer + "/protocol/openid-connect/auth/device",
		issuer + "/protocol/openid-connect/token", issuer + "/protocol/openid-connect/certs",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	_, keys := s.page("GET", issuer+"/protocol/openid-connect/certs", nil)
	if n := base64.RawURLEncoding.EncodeToString(s.realmKey()); !strings.Contains(keys, n) ||
		!strings.Contains(keys, `"e":"AQAB"`) {
		t.Errorf("%s", keys)
	}
}

// realmKey returns the modulus of the key that verifies the admin's token.
func (s *site) realmKey() []byte {
	return bytes.Clone(s.realm.key.N.Bytes())
}
