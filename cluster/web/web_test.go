package web

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
)

func TestNewWeb(t *testing.T) {
	for _, tc := range []struct {
		situation, base, token string
		ok                     bool
	}{
		{"https", "https://renku.example.org/api/data/", "secret", true},
		{"http without a token", "http://renku.example.org", "", true},
		{"http with a token", "http://renku.example.org", "secret", false},
		{"http with a token to this machine", "http://127.0.0.1:8080", "secret", true},
		{"no scheme", "renku.example.org", "", false},
		{"another scheme", "file:///etc", "", false},
		{"a password", "https://a:secret@renku.example.org", "", false},
		{"a query", "https://renku.example.org?a=b", "", false},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			w, err := New(tc.base, masked.New(tc.token), Options{})
			if (err == nil) != tc.ok || err != nil && strings.Contains(err.Error(), "secret") {
				t.Fatalf("error %v", err)
			}
			if tc.ok && w.Base() != strings.TrimSuffix(tc.base, "/") {
				t.Errorf("base %q", w.Base())
			}
		})
	}
}

// serveWeb serves an API and returns it with a count of the requests it got.
func serveWeb(t *testing.T, serve http.HandlerFunc) (*Client, *atomic.Int32) {
	t.Helper()
	count := new(atomic.Int32)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		serve(w, r)
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	web, err := New(server.URL+"/api", masked.New("secret"), Options{CA: ca, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(web.Close)
	return web, count
}

func TestWebJSON(t *testing.T) {
	web, _ := serveWeb(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"saw":"`+r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization")+" "+
			strings.ReplaceAll(string(body), `"`, `'`)+`"}`)
	})
	var out struct{ Saw string }
	status, err := web.JSON(t.Context(), http.MethodPost, "/clusters?x=1", map[string]int{"a": 1}, &out)
	if err != nil || status != http.StatusCreated || out.Saw != "POST /api/clusters?x=1 Bearer secret {'a':1}" {
		t.Errorf("got %d, %q, %v", status, out.Saw, err)
	}
	if _, err := web.JSON(
		t.Context(), http.MethodPost, "/x", map[string]masked.Value{"a": masked.New("secret")}, nil,
	); err == nil {
		t.Error("the word that hides a secret was sent in its place")
	}
	for _, path := range []string{"clusters", "@evil.example.org/", "/../../x", "/a#b", ""} {
		if _, err := web.JSON(t.Context(), http.MethodGet, path, nil, nil); err == nil {
			t.Errorf("the path %q is taken", path)
		}
	}
}

func TestWebErrors(t *testing.T) {
	for _, tc := range []struct {
		situation, contentType, body string
		status, code                 int
		message, detail              string
	}{
		{
			situation: "Renku's form", status: 409, code: 1409, message: "taken", detail: "by b",
			body: `{"error":{"code":1409,"message":"taken","detail":"by b","trace_id":"x"}}`,
		},
		{situation: "no detail", status: 401, code: 1401, message: "who?", body: `{"error":{"code":1401,"message":"who?"}}`},
		{situation: "a message at the top", status: 404, message: "none", body: `{"message":"none"}`},
		{
			situation: "OAuth's form", status: 400, message: "Code expired",
			body: `{"error":"invalid_grant","error_description":"Code expired"}`,
		},
		{situation: "nothing", status: 502, message: "Bad Gateway"},
		{
			situation: "a page", status: 503, contentType: "text/html", body: "<html>", message: "Service Unavailable",
			detail: "the answer is a web page, such as from a proxy or a login",
		},
		{
			situation: "text", status: 500, contentType: "text/plain", body: "oh no\x1b[2J", message: "Internal Server Error",
			detail: `"oh no"`,
		},
		{situation: "escape sequences", status: 422, message: "ab", body: `{"error":{"message":"a\u001b[31mb"}}`},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			web, _ := serveWeb(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.contentType)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			status, err := web.JSON(t.Context(), http.MethodGet, "/x", nil, nil)
			var bad *Error
			if !errors.As(err, &bad) || status != tc.status {
				t.Fatalf("got %d, %v", status, err)
			}
			if bad.Status != tc.status || bad.Code != tc.code || bad.Message != tc.message || bad.Detail != tc.detail ||
				bad.URL != web.Base()+"/x" {
				t.Errorf("got %+v", bad)
			}
			if want := map[string]string{"OAuth's form": "invalid_grant"}[tc.situation]; bad.OAuth != want {
				t.Errorf("OAuth's word is %q", bad.OAuth)
			}
		})
	}
	t.Run("a redirect", func(t *testing.T) {
		web, count := serveWeb(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://login.example.org/", http.StatusFound)
		})
		_, err := web.JSON(t.Context(), http.MethodGet, "/x", nil, nil)
		var bad *Error
		if !errors.As(err, &bad) || bad.Status != 302 || !strings.Contains(bad.Detail, "login.example.org") ||
			count.Load() != 1 {
			t.Errorf("error %v after %d requests", err, count.Load())
		}
	})
	t.Run("a page where JSON belongs", func(t *testing.T) {
		web, _ := serveWeb(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
		var out any
		if status, err := web.JSON(t.Context(), http.MethodGet, "/x", nil, &out); status != 200 ||
			!errors.Is(err, failure.ErrNotJSON) {
			t.Errorf("got %d, %v", status, err)
		}
	})
	t.Run("an answer that does not end", func(t *testing.T) {
		web, _ := serveWeb(t, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		})
		if _, err := web.JSON(t.Context(), http.MethodGet, "/x", nil, nil); err == nil ||
			!strings.Contains(err.Error(), "larger than 4 MiB") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		web, _ := serveWeb(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := web.JSON(ctx, http.MethodGet, "/x", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

func TestWebKeepsAnswers(t *testing.T) {
	web, count := serveWeb(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, `{"n":1}`) })
	ctx, trace := tracked.WithTrace(tracked.WithLooks(t.Context(), tracked.NewLooks()))
	get := func() {
		t.Helper()
		var out struct{ N int }
		if _, err := web.JSON(ctx, http.MethodGet, "/x", nil, &out); err != nil || out.N != 1 {
			t.Fatalf("got %+v, %v", out, err)
		}
	}
	get()
	get()
	if count.Load() != 1 {
		t.Errorf("%d requests for one thing", count.Load())
	}
	if due := time.Until(trace.Expires); due <= 0 || due > age {
		t.Errorf("looks again in %v", due)
	}
	if _, err := web.JSON(ctx, http.MethodPost, "/y", nil, nil); err != nil {
		t.Fatal(err)
	}
	if !trace.Differs() {
		t.Error("a change does not wake who looked")
	}
	get()
	if count.Load() != 3 {
		t.Errorf("%d requests", count.Load())
	}
}

// A private CA is trusted in addition to the system's roots, and required.
func TestWebAddressTrustsItsCAToo(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"got":%q}`, r.Form.Get("scope"))
	}))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var out struct{ Got string }
	for name, at := range map[string]Address{"with": {Base: server.URL, CA: string(ca)}, "without": {Base: server.URL}} {
		w, err := at.Open()
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Form(t.Context(), "/token", url.Values{"scope": {"open id"}}, &out)
		w.Close()
		if (err == nil) != (name == "with") {
			t.Errorf("%s the CA: %v", name, err)
		}
	}
	if out.Got != "open id" {
		t.Errorf("the form arrived as %q", out.Got)
	}
	if _, err := (Address{Base: server.URL, CA: "no PEM"}).Open(); err == nil {
		t.Error("what is no certificate was taken as a CA")
	}
}

// A proxy echoes the request, or a response with a token is truncated. No error contains the token.
func TestNoTokenInErrorsOfTheWeb(t *testing.T) {
	const token = "eyJ0.correct-horse.battery"
	for situation, answer := range map[string]func(http.ResponseWriter, string){
		"an error that repeats it": func(
			w http.ResponseWriter, sent string,
		) {
			w.WriteHeader(502)
			_, _ = io.WriteString(w, "got "+sent)
		},
		"JSON that repeats it": func(w http.ResponseWriter, sent string) {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"message":"`+sent+`"}`)
		},
		"a page that repeats it": func(w http.ResponseWriter, sent string) { _, _ = io.WriteString(w, "got "+sent) },
		"a redirect that repeats it": func(w http.ResponseWriter, sent string) {
			w.Header().Set("Location", "https://b/?t="+sent)
			w.WriteHeader(302)
		},
		"a token that is cut short": func(
			w http.ResponseWriter, _ string,
		) {
			_, _ = io.WriteString(w, `{"access_token":"`+token)
		},
		"a refusal with a token in it": func(
			w http.ResponseWriter, _ string,
		) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, token)
		},
	} {
		t.Run(situation, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer(w, r.Header.Get("Authorization"))
			}))
			t.Cleanup(server.Close)
			out := map[string]any{}
			asked, err := New(server.URL, masked.New(token), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := asked.JSON(t.Context(), "GET", "/x", nil, &out); err == nil ||
				strings.Contains(err.Error(), "correct-horse") {
				t.Errorf("JSON: error %v", err)
			}
			login, err := New(server.URL, masked.Value{}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := login.Form(t.Context(), "/x", url.Values{}, &out); err == nil ||
				strings.Contains(err.Error(), "correct-horse") {
				t.Errorf("Form: error %v", err)
			}
		})
	}
}
