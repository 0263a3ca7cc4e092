package renkuapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestFaultHTML(t *testing.T) {
	s := newSite(t, "html")
	for i, want := range []int{200, 502, 200, 502} {
		if got := s.call("GET", "/version", nil); got.status != want || !strings.Contains(string(got.body), "<html>") {
			t.Errorf("answer %d: %d %s", i, got.status, got.body)
		}
	}
	if status, body := s.page(
		"GET", "https://"+s.Domain()+realmPath+"/.well-known/openid-configuration", nil,
	); status != 200 || !strings.HasPrefix(body, "{") {
		t.Errorf("Keycloak is to be left alone: %d %s", status, body)
	}
}

func TestFaultSlow(t *testing.T) {
	waited := []time.Duration{}
	passed := make(chan time.Time, 1)
	c := clock{after: func(d time.Duration) <-chan time.Time {
		waited = append(waited, d)
		return passed
	}}
	answers := 0
	h := misbehave(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answers++ }), map[string]bool{"slow": true}, c,
	)
	passed <- time.Time{}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", apiPath+"/version", nil))
	if answers != 1 || len(waited) != 1 || waited[0] != 5*time.Second {
		t.Errorf("%d answers after %v", answers, waited)
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", realmPath+"/certs", nil))
	if answers != 2 || len(waited) != 1 {
		t.Errorf("Keycloak waited %v", waited)
	}
}

func TestFaultNotAdmin(t *testing.T) {
	s := newSite(t, "not-admin")
	if got := s.call("GET", "/clusters", nil); got.status != 403 {
		t.Errorf("%d", got.status)
	}
	d := s.signIn()
	s.clock.advance(selfApproval)
	if got := s.wantPoll(d, 200, ""); s.as(got.Token, "GET", "/user", nil).object(t)["is_admin"] != false {
		t.Error("who signs in is admin")
	}
}

func TestFaultNameTaken(t *testing.T) {
	s := newSite(t, "name-taken")
	taken := func(name string) bool {
		for _, row := range s.must(200, "GET", "/clusters", nil).list(t) {
			if row["name"] == name {
				return true
			}
		}
		return false
	}
	if !taken("Remote Cluster") {
		t.Error("the guide's name is free")
	}
	refusals{{"the first name", "", "/clusters", guideCluster(), 409, "the name is already used"}}.play(t, s)
	if !taken("Bern cluster") {
		t.Error("who has the name is not shown")
	}
	s.must(201, "POST", "/clusters", with(guideCluster(), object{"name": "Another name"}))
}

func TestFaultOldRenku(t *testing.T) {
	s := newSite(t, "old-renku")
	named := with(guideCluster(), object{tlsFlag: nil, "session_tls_secret_name": "x"})
	refusals{
		{"the flag", "", "/clusters", guideCluster(), 422, tlsFlag + ": Extra inputs are not permitted"},
		{
			"the account", "", "/clusters", with(named, object{accountName: "sessions"}), 422,
			accountName + ": Extra inputs are not permitted",
		},
		{"no TLS Secret", "", "/clusters", with(named, object{"session_tls_secret_name": ""}), 422, "neither"},
	}.play(t, s)
	if _, there := s.must(201, "POST", "/clusters", named).object(t)[tlsFlag]; there {
		t.Error("an old Renku answers with the flag")
	}
}

func TestFaultsHaveSentences(t *testing.T) {
	for _, name := range []string{"tls-null", "not-admin", "html", "slow", "old-renku", "name-taken"} {
		if !strings.HasSuffix(Faults()[name], ".") {
			t.Errorf("%s: %q", name, Faults()[name])
		}
	}
	if s := newSite(t); len(s.must(200, "GET", "/clusters", nil).list(t)) != 1 {
		t.Error("without faults there is Paris alone")
	}
}
