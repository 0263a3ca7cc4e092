package probe_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"carrick/cluster/probe"
)

func TestHold(t *testing.T) {
	started := make(chan struct{}, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/goes-on":
			_, _ = w.Write([]byte("first\n"))
			w.(http.Flusher).Flush()
			started <- struct{}{}
			<-r.Context().Done()
		case "/ends":
			_, _ = w.Write([]byte("all\n"))
		case "/cut":
			_, _ = w.Write([]byte("some\n"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/silent":
			started <- struct{}{}
			<-r.Context().Done()
		default:
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	defer s.Close()
	hold := func(path string, long time.Duration) probe.HoldReport {
		t.Helper()
		r, err := probe.Hold(t.Context(), s.URL+path, long, probe.HTTPOptions{})
		if err != nil {
			t.Fatal(path, err)
		}
		return r
	}
	if r := hold("/goes-on", 50*time.Millisecond); r.Ended || r.Held < 50*time.Millisecond ||
		string(r.Body) != "first\n" || r.Status != 200 {
		t.Errorf("one that goes on: %+v", r)
	}
	if r := hold("/ends", time.Minute); !r.Ended || r.Why != "" || string(r.Body) != "all\n" {
		t.Errorf("one that ends: %+v", r)
	}
	if r := hold("/cut", time.Minute); !r.Ended || r.Why == "" {
		t.Errorf("one that is cut: %+v", r)
	}
	if r := hold("/forbidden", time.Minute); r.Status != 403 || !r.Ended {
		t.Errorf("one that is refused: %+v", r)
	}
	<-started // of the first
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go func() { <-started; cancel(why) }()
	if _, err := probe.Hold(ctx, s.URL+"/silent", time.Minute, probe.HTTPOptions{}); !errors.Is(err, why) {
		t.Errorf("no answer: %v", err)
	}
}
