package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"carrick/cluster/clean"
	"carrick/cluster/clustertest/hostile"
	"carrick/cluster/failure"
)

// A server that is not the API can send anything. No error contains its text unchanged, or the token that it received.
func FuzzWebAnswers(f *testing.F) {
	const token = "t0ken-of-an-admin"
	f.Add(500, "application/json", "", `{"error":{"code":1e300,"message":"\u001b[2J","detail":["x"]}}`)
	f.Add(401, "text/html", "", "<html>\x1b]0;x\x07")
	f.Add(302, "", "https://evil.example.org/?"+token, "")
	f.Add(400, "application/json", "", `{"error":"authorization_pending","error_description":"\u202e `+token+`"}`)
	f.Add(200, "application/json", "", `[{"a":1},{]`)
	f.Add(200, "application/json", "", `{"is_admin":"yes","username":{}}`)
	addTexts(f, func(text string) { f.Add(403, "text/plain", text, text) })
	f.Fuzz(func(t *testing.T, status int, kind, location, body string) {
		if status < 200 || status > 599 {
			return
		}
		for _, secret := range []bool{false, true} {
			a := response{
				status: status, header: http.Header{"Content-Type": {kind}, "Location": {location}}, body: []byte(body),
				secret: secret,
			}
			var out struct {
				Admin bool `json:"is_admin"`
				Name  string
			}
			_, err := a.decode("GET https://renku.example.org/api", "https://renku.example.org/api", &out, nil)
			if err == nil {
				continue
			}
			for _, text := range []string{failure.Explain(err), clean.Text(err.Error())} {
				if bad := hostile.Unfit(text); bad != "" {
					t.Errorf("%q: %s", body, bad)
				}
			}
			if web, ok := err.(*Error); ok && hostile.Unfit(web.Error()) != "" {
				t.Errorf("the error itself: %s", hostile.Unfit(web.Error()))
			}
			shown := strings.ReplaceAll(err.Error(), clean.Text(location), "") // where it leads to is no body
			if secret && len(body) > 40 && !json.Valid([]byte(body)) && strings.Contains(shown, body) {
				t.Errorf("a body that may hold a token is shown: %v", err)
			}
		}
	})
}

func addTexts(f *testing.F, add func(string)) {
	f.Helper()
	for name, text := range hostile.Texts {
		if name != "a long line" { // mutations of it cost time, and find nothing
			add(text)
		}
	}
}
