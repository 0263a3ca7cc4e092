package stepstest

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"

	"carrick/cluster/bearer"
	"carrick/cluster/masked"
)

func TestWebAnswersWhatAStateSays(t *testing.T) {
	w, err := newWeb()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	answers := map[string][]webAnswer{}
	for _, text := range []string{
		"GET /a: {json: {x: 1}}\nGET /gone: {body: here}\nGET /q?x=1: {status: 404, body: no, type: text/html}",
		"GET /gone: null\nGET /who:\n  - {when: {Authorization: Bearer jane}, body: jane}\n  - {status: 401}",
	} {
		if err := webSection(answers, text); err != nil {
			t.Fatal(err)
		}
	}
	w.answers = answers
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	for _, tc := range []struct {
		path, token, body string
		status            int
	}{
		{path: "/a?any=1", status: 200, body: "{\"x\":1}\n"},
		{path: "/q?x=1", status: 404, body: "no"},
		{path: "/gone", status: 404, body: "the state has no answer to this request\n"},
		{path: "/who", status: 401},
		{path: "/who", token: "Bearer jane", status: 200, body: "jane"},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", w.URL+tc.path, nil)
		req.Header.Set("Authorization", tc.token)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != tc.status || string(body) != tc.body {
			t.Errorf("%s as %q: %d %q", tc.path, tc.token, resp.StatusCode, body)
		}
	}
	resp, err := client.Post(w.URL+"/a", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 405 || len(w.refused) != 1 || w.refused[0] != "POST /a" {
		t.Errorf("a write is answered %d, noted %v", resp.StatusCode, w.refused)
	}
}

func TestWebSectionsHoldReadsAlone(t *testing.T) {
	for _, text := range []string{"POST /a: {}", "GET a: {}", "GET /a: 7", "GET /a: {jsn: 1, status: x}"} {
		if webSection(map[string][]webAnswer{}, text) == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestClaimsBecomeAToken(t *testing.T) {
	w, err := newWeb()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	got := w.expand(`x ${claims RS256 {"aud":"a","realm_access":{"roles":["r"]}}} y`)
	words := strings.Fields(got)
	if len(words) != 3 {
		t.Fatalf("got %q", got)
	}
	token, err := bearer.Parse(masked.New(words[1]))
	if err != nil || token.Method != "RS256" || len(token.Roles) != 1 || token.Audience[0] != "a" {
		t.Errorf("got %+v, %v", token, err)
	}
}
