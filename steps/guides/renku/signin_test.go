package renku

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"carrick/cluster/masked"
	"carrick/cluster/web"
	"carrick/steps"
)

// realm is a stand-in of Keycloak's two endpoints: it gives the scripted
// answers to the polls, one after the other.
func realm(t *testing.T, interval int, polls ...string) *web.Client {
	t.Helper()
	asked := 0
	mux := http.NewServeMux()
	mux.HandleFunc("POST /realm/protocol/openid-connect/auth/device", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != "renku-cli" {
			w.WriteHeader(401)
			_, _ = w.Write([]byte(`{"error":"invalid_client","error_description":"Invalid client"}`))
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"device_code": "d3v", "user_code": "ABCD-\u001b[31mEFGH", "verification_uri": "https://renku.example.org/device",
			"verification_uri_complete": "https://renku.example.org/device?user_code=ABCD-EFGH", "expires_in": 600,
			"interval": interval,
		})
	})
	mux.HandleFunc("POST /realm/protocol/openid-connect/token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("device_code") != "d3v" ||
			r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:device_code" {
			t.Errorf("asked for a token with %v", r.Form)
		}
		answer := polls[min(asked, len(polls)-1)]
		asked++
		switch {
		case answer == "502":
			w.WriteHeader(502)
		case strings.HasPrefix(answer, "{"):
			_, _ = w.Write([]byte(answer))
		default:
			w.WriteHeader(400)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": answer, "error_description": "in Keycloak's words"})
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	web, err := web.New(server.URL+"/realm", masked.Value{}, web.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return web
}

func TestDeviceLogin(t *testing.T) {
	const token = `{"access_token":"t0ken"}`
	for _, tc := range []struct {
		situation string
		interval  int
		polls     []string
		pauses    string
		err       string
	}{
		{situation: "approved at once", interval: 2, polls: []string{token}, pauses: "2s"},
		{
			situation: "approved later", polls: []string{"authorization_pending", "authorization_pending", token},
			pauses: "5s 5s 5s",
		},
		{
			situation: "asked too often", interval: 1, polls: []string{"slow_down", "authorization_pending", token},
			pauses: "1s 6s 6s",
		},
		{situation: "an answer is lost", interval: 1, polls: []string{"502", token}, pauses: "1s 6s"},
		{situation: "all answers are lost", interval: 1, polls: []string{"502"}, pauses: "1s 6s 11s 16s", err: "502"},
		{situation: "expired", interval: 1, polls: []string{"expired_token"}, pauses: "1s", err: "the code expired"},
		{situation: "refused", interval: 1, polls: []string{"access_denied"}, pauses: "1s", err: "denied in the browser"},
		{
			situation: "a client that may not", interval: 1, polls: []string{"unauthorized_client"}, pauses: "1s",
			err: "--secret renku.token",
		},
		{situation: "no token", interval: 1, polls: []string{`{}`}, pauses: "1s", err: "without a token"},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			var pauses, said []string
			got, err := deviceLogin{
				realm: realm(t, tc.interval, tc.polls...),
				say:   func(e steps.Event) { said = append(said, e.Text) },
				pause: func(_ context.Context, d time.Duration) error { pauses = append(pauses, d.String()); return nil },
			}.run(t.Context())
			if strings.Join(pauses, " ") != tc.pauses {
				t.Errorf("paused %v, want %s", pauses, tc.pauses)
			}
			if tc.err == "" && (err != nil || got != masked.New("t0ken")) {
				t.Errorf("error %v", err)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "d3v")) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
			text := strings.Join(said, "\n")
			for _, want := range []string{"https://renku.example.org/device in a browser", "ABCD-EFGH", "?user_code=ABCD-EFGH"} {
				if !strings.Contains(text, want) {
					t.Errorf("it says %q, without %q", text, want)
				}
			}
			if strings.ContainsAny(text, "\x1b") || strings.Contains(text, "t0ken") {
				t.Errorf("it says %q", text)
			}
		})
	}
}

func TestDeviceLoginEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the user left")
	_, err := deviceLogin{
		realm: realm(t, 1, "authorization_pending"), pause: func(ctx context.Context, d time.Duration) error {
			cancel(gone)
			return pause(ctx, time.Hour)
		},
	}.run(ctx)
	if !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}

func TestDeviceLoginOfAnotherService(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	web, err := web.New(server.URL, masked.Value{}, web.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (deviceLogin{realm: web, pause: pause}).run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "check renku.url") {
		t.Errorf("error %v", err)
	}
}

// A code ends in time, whatever the answer says of it.
func TestACodeEnds(t *testing.T) {
	for seconds, want := range map[int]time.Duration{
		0: 10 * time.Minute, -1: 10 * time.Minute, 600: 10 * time.Minute, 1 << 62: time.Hour,
	} {
		if got := (deviceGrant{Expires: seconds}).lasts(); got != want {
			t.Errorf("%d s last %s, want %s", seconds, got, want)
		}
	}
}

// A fix is to be pasted: what a release says of itself stays one word there.
func TestNamesOutOfAReleaseAreQuoted(t *testing.T) {
	got := upgradeLine("renku", "2.19.3; rm -rf /", "renku --kube-context a", "-f x.yaml")
	if want := "helm upgrade renku renku/renku -n renku --kube-context a --version '2.19.3; rm -rf /' " +
		"--reuse-values -f x.yaml"; got != want {
		t.Errorf("got %s", got)
	}
}
