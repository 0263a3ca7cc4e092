package renku

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/clustertest/hostile"
	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/web"
	"carrick/steps"
)

const adminsToken = "t0ken-of-an-admin-4711"

// Any user can choose some strings in the answers of Renku's API, such as names of pools and
// classes, and annotations. For any answer, carrick returns a verdict, and no verdict contains the
// token.
func FuzzAnswersOfRenku(f *testing.F) {
	want := map[string]any{
		"name": "a", "config_name": "a.yaml", fieldProtocol: "https", fieldDefault: true,
		fieldNotes: map[string]any{"a": "b"}, fieldTLS: "t",
	}
	for _, body := range []string{
		`[]`, `{}`, `[null]`, `[{"id":"01KDY02100RENKVTESTCAVSTER","config_name":"a.yaml","name":{}}]`,
		`[{"config_name":"a.yaml","session_ingress_annotations":[1],"session_port":1e400}]`,
		`[{"config_name":"a.yaml","session_ingress_annotations":{"a":"\u001b[2J","b":null},"session_tls_secret_name":7,"session_ingress_use_default_cluster_tls_cert":"yes"}]`,
		`[{"name":"p","classes":[{"cpu":"x"},null,7],"quota":{"id":3},"cluster":{"id":[]}}]`,
	} {
		f.Add(200, body)
	}
	for name, text := range hostile.Texts {
		if name != "a long line" {
			b, _ := json.Marshal(
				[]any{map[string]any{"config_name": "a.yaml", "name": text, fieldNotes: map[string]any{text: text}}},
			)
			f.Add(200, string(b))
			f.Add(500, `{"error":{"code":1500,"message":"`+text+`","detail":"Database error"}}`)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 {
			return
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body + adminsToken))
		}))
		defer server.Close()
		web, err := web.New(server.URL, masked.New(adminsToken), web.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer web.Close()
		fit := func(text string) {
			if bad := hostile.Unfit(text); bad != "" || strings.Contains(text, adminsToken) {
				t.Errorf("%s: %q", bad, text)
			}
		}
		var any1 any
		if _, err := web.JSON(t.Context(), "GET", "/x", nil, &any1); err != nil {
			found, next := plainly(err)
			fit(clean.Text(found + next)) // as a verdict
			fit(failure.Explain(&apiError{"x", found, next}))
		}
		var rows []map[string]any
		if json.Unmarshal([]byte(body), &rows) != nil {
			return
		}
		if row := rowOf(rows, "a.yaml"); row != nil {
			for _, d := range differences(want, row) {
				fit(clean.Text(d.String()))
			}
			fit(clean.Text(changedLines(differences(want, row))))
			_, _ = patches(want, row)
		}
	})
}

// carrick reads Keycloak's responses to a sign-in before any user is authenticated.
func FuzzSignIn(f *testing.F) {
	f.Add(
		`{"device_code":"d","user_code":"ABCD","verification_uri":"https://a","expires_in":-1,"interval":-5}`,
		`{"error":"slow_down"}`,
	)
	f.Add(
		`{"device_code":"d","verification_uri":"javascript:alert(1)","verification_uri_complete":"\u001b]8;;x\u0007","expires_in":1e9,"interval":1e9}`,
		`{"access_token":""}`,
	)
	f.Add(`{"device_code":"d","verification_uri":"https://a\nb"}`, `{"access_token":"`+adminsToken+`"}`)
	f.Add(`[]`, `null`)
	for name, text := range hostile.Texts {
		if name != "a long line" {
			f.Add(`{"device_code":"d","verification_uri":"`+text+`"}`, `{"error":"`+text+`"}`)
			f.Add(text, text)
		}
	}
	f.Fuzz(func(t *testing.T, begin, poll string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/auth/device") {
				_, _ = w.Write([]byte(begin))
				return
			}
			if strings.Contains(poll, `"error"`) {
				w.WriteHeader(http.StatusBadRequest)
			}
			_, _ = w.Write([]byte(poll))
		}))
		defer server.Close()
		realm, err := web.New(server.URL, masked.Value{}, web.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer realm.Close()
		asked := 0
		login := deviceLogin{realm: realm, say: func(e steps.Event) {
			if bad := hostile.Unfit(e.Text); bad != "" {
				t.Error(bad)
			}
		}, pause: func(ctx context.Context, d time.Duration) error {
			if asked++; asked > 3 {
				return context.Canceled
			}
			if d <= 0 || d > 2*time.Hour {
				t.Errorf("a pause of %s", d)
			}
			return ctx.Err()
		}}
		token, err := login.run(t.Context())
		if err == nil && token.IsZero() {
			t.Error("signed in without a token")
		}
		if err != nil {
			text := clean.Text(err.Error())
			if bad := hostile.Unfit(text); bad != "" || strings.Contains(text, adminsToken) {
				t.Errorf("%s: %q", bad, text)
			}
		}
	})
}

// A log line that is shown as evidence is short, clean, and contains no token.
func FuzzLogLines(f *testing.F) {
	const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"
	for _, text := range hostile.Texts {
		f.Add("Failed to load kube config /secrets/kube_configs/a.yaml: "+text, "a.yaml")
	}
	f.Add("token: "+token, "a.yaml")
	f.Add("token: eyJhbGci\x1b[0mOiJSUzI1NiJ9\x1b[1m.eyJzdWIiOiJhIn0.c2ln\u202ebmF0dXJl", "")
	f.Fuzz(func(t *testing.T, line, config string) {
		var l loading
		l.judge(line, config)
		got := quote(line)
		if bad := hostile.Unfit(got); bad != "" || len([]rune(got)) > 210 {
			t.Errorf("%s: %q", bad, got)
		}
		if tokenInText.MatchString(got) {
			t.Errorf("a token is quoted: %s", got)
		}
	})
}

// The spec of a pool can be any YAML.
func FuzzPools(f *testing.F) {
	f.Add(goodPool)
	f.Add("a: &a [*a]")
	f.Add("name: a\nquota: {cpu: .inf, memory: 1e400}\nclasses: [{name: a, cpu: -1}, null, 7, [1]]\n")
	f.Add("? {a: b}\n: c\n")
	f.Add("<<: {name: a}\nclasses: []\n")
	for name, text := range hostile.Texts {
		if name != "a long line" {
			f.Add("name: " + text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := readPool([]byte(text))
		if err == nil {
			for _, p := range d.problems() {
				if bad := hostile.Unfit(p); bad != "" {
					t.Error(bad)
				}
			}
			if _, err := json.Marshal(d.payload); err != nil {
				t.Errorf("what is sent is no JSON: %v", err)
			}
			_ = d.tooTight()
		}
		_ = checkPool(text)
	})
}
