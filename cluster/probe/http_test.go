package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// quiet is a logger for servers whose clients are expected to fail.
var quiet = log.New(io.Discard, "", 0)

func TestHTTP(t *testing.T) {
	root := newAuthority(t, "root", time.Now().AddDate(1, 0, 0))
	plainServer := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plainServer.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "test")
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, r.Method+" "+r.Header.Get("Authorization"))
	})
	mux.HandleFunc(
		"/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/hello", http.StatusFound) },
	)
	mux.HandleFunc(
		"/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) },
	)
	mux.HandleFunc(
		"/down", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plainServer.URL, http.StatusFound) },
	)
	mux.HandleFunc(
		"/big", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 2*bodyLimit)) },
	)
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{root.issue(t, nil).tls()}}
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)

	options := HTTPOptions{Roots: root.pem(), Header: http.Header{"authorization": {"Bearer x"}}}
	t.Run("an answer of any status is a report", func(t *testing.T) {
		r, err := HTTP(t.Context(), http.MethodGet, server.URL+"/hello", options)
		if err != nil || r.Status != http.StatusTeapot || r.Server != "test" || r.ContentType != "text/plain" ||
			string(r.Body) != "GET Bearer x" || r.Latency <= 0 || time.Since(r.Date).Abs() > time.Minute {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("a redirect is followed", func(t *testing.T) {
		r, err := HTTP(t.Context(), http.MethodGet, server.URL+"/moved", options)
		if err != nil || r.Status != http.StatusTeapot || r.URL != server.URL+"/hello" {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("a redirect is the answer when asked so", func(t *testing.T) {
		o := options
		o.NoRedirects = true
		r, err := HTTP(t.Context(), http.MethodGet, server.URL+"/moved", o)
		if err != nil || r.Status != http.StatusFound || r.Header.Get("Location") != "/hello" {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	for _, path := range []string{"/round", "/down"} {
		t.Run("a redirect that leads nowhere good is an error: "+path, func(t *testing.T) {
			if r, err := HTTP(t.Context(), http.MethodGet, server.URL+path, options); err == nil {
				t.Errorf("got %+v", r)
			}
		})
	}
	t.Run("a long body is cut", func(t *testing.T) {
		r, err := HTTP(t.Context(), http.MethodGet, server.URL+"/big", options)
		if err != nil || len(r.Body) != bodyLimit {
			t.Errorf("got %d bytes, %v", len(r.Body), err)
		}
	})
	t.Run("an unknown authority is an error", func(t *testing.T) {
		other := HTTPOptions{Roots: newAuthority(t, "other", time.Now().AddDate(1, 0, 0)).pem()}
		_, err := HTTP(t.Context(), http.MethodGet, server.URL+"/hello", other)
		if bad := (*tls.CertificateVerificationError)(nil); !errors.As(err, &bad) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no answer ends with the deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := HTTP(ctx, http.MethodGet, server.URL+"/never", options); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}
