package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault is a failure injected into a request.
type Fault struct {
	Name  string
	serve func(w http.ResponseWriter, r *http.Request, asked Request, next http.Handler)
}

// Rule selects the requests that get a fault.
type Rule struct {
	Verbs     []string // empty: all
	Resources []string // empty: all
	Changes   bool     // match only requests that can change the cluster
	Looks     bool     // match only requests that cannot change the cluster
	After     int      // number of matching requests to forward normally before the first fault
	Times     int      // number of requests that get the fault; 0: all
	Fault     Fault

	seen int
}

func (r *Rule) fits(asked Request) bool {
	return (len(r.Verbs) == 0 || slices.Contains(r.Verbs, asked.Verb)) && (len(r.Resources) == 0 ||
		slices.Contains(r.Resources, asked.Resource)) &&
		(!r.Changes || asked.Changes()) && (!r.Looks || !asked.Changes())
}

// Set replaces the rules. A request gets the fault of the first rule that matches. Requests in flight are not affected:
// see Cut.
func (p *Proxy) Set(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
	for i := range rules {
		p.rules = append(p.rules, &rules[i])
	}
}

// faultOf returns the fault for a request, or nil.
func (p *Proxy) faultOf(asked Request) *Fault {
	for _, r := range p.rules {
		if !r.fits(asked) {
			continue
		}
		if r.seen++; r.seen > r.After && (r.Times == 0 || r.seen <= r.After+r.Times) {
			return &r.Fault
		}
	}
	return nil
}

// Latency delays each request.
func Latency(d time.Duration) Fault {
	return Fault{"latency", func(w http.ResponseWriter, r *http.Request, _ Request, next http.Handler) {
		select {
		case <-time.After(d):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}}
}

// Reset resets the connection before the response.
func Reset() Fault {
	return Fault{"reset", func(_ http.ResponseWriter, r *http.Request, _ Request, _ http.Handler) { reset(r) }}
}

// ResetInBody forwards a request and resets the connection in the middle of the response.
func ResetInBody() Fault {
	return Fault{"reset in the body", func(w http.ResponseWriter, r *http.Request, _ Request, next http.Handler) {
		half(w, r, next)
		_ = http.NewResponseController(w).Flush()
		reset(r)
	}}
}

// Short forwards a request and ends the response after half of its body, without an error.
func Short() Fault {
	return Fault{
		"a body that ends early",
		func(w http.ResponseWriter, r *http.Request, _ Request, next http.Handler) { half(w, r, next) },
	}
}

// half writes the first half of a response. For a watch, it writes half of the first event.
func half(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	taken := &responseRecorder{header: http.Header{}, enough: cancel, stream: r.URL.Query().Get("watch") == "true"}
	func() {
		defer func() { _ = recover() }() // the truncation aborts the handler
		next.ServeHTTP(taken, r.WithContext(ctx))
	}()
	w.Header().Set("Content-Type", taken.header.Get("Content-Type"))
	w.WriteHeader(max(taken.code, http.StatusOK))
	_, _ = w.Write(taken.body.Bytes()[:taken.body.Len()/2])
}

// responseRecorder is an http.ResponseWriter that records a response until it calls enough.
type responseRecorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
	enough func()
	stream bool
}

func (t *responseRecorder) Header() http.Header  { return t.header }
func (t *responseRecorder) WriteHeader(code int) { t.code = code }
func (t *responseRecorder) Flush()               {}

func (t *responseRecorder) Write(b []byte) (int, error) {
	n, err := t.body.Write(b)
	if t.stream {
		t.enough()
	}
	return n, err
}

// Throttled responds with 429 and Retry-After.
func Throttled(after time.Duration) Fault {
	return Fault{"429", func(w http.ResponseWriter, _ *http.Request, _ Request, _ http.Handler) {
		w.Header().Set("Retry-After", fmt.Sprint(int(after.Seconds())))
		status(w, http.StatusTooManyRequests, "TooManyRequests", "too many requests, please try again later")
	}}
}

// Broken responds with 500.
func Broken() Fault {
	return Fault{"500", func(w http.ResponseWriter, _ *http.Request, _ Request, _ http.Handler) {
		status(w, http.StatusInternalServerError, "InternalError", "Internal error occurred: etcdserver: request timed out")
	}}
}

// Unavailable responds with 503.
func Unavailable() Fault {
	return Fault{"503", func(w http.ResponseWriter, _ *http.Request, _ Request, _ http.Handler) {
		status(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the server is currently unable to handle the request")
	}}
}

// Forbidden responds with 403, as RBAC does.
func Forbidden() Fault {
	return Fault{"403", func(w http.ResponseWriter, _ *http.Request, asked Request, _ http.Handler) {
		resource, group, _ := strings.Cut(asked.Resource, ".")
		where := "at the cluster scope"
		if asked.Namespace != "" {
			where = fmt.Sprintf("in the namespace %q", asked.Namespace)
		}
		what := asked.Resource
		if asked.Name != "" {
			what += fmt.Sprintf(" %q", asked.Name)
		}
		status(
			w, http.StatusForbidden, "Forbidden",
			fmt.Sprintf(
				"%s is forbidden: User \"jane\" cannot %s resource %q in API group %q %s", what, asked.Verb, resource, group, where,
			),
		)
	}}
}

func status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": "Failure", "code": code,
		"reason": reason, "message": message,
	})
}

// CutWatch ends each watch without an error after the given time. It forwards other requests.
func CutWatch(after time.Duration) Fault {
	return Fault{"a watch that is cut", func(w http.ResponseWriter, r *http.Request, asked Request, next http.Handler) {
		if asked.Verb != "watch" {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), after)
		defer cancel()
		defer func() { _ = recover() }() // an aborted response ends the watch, too
		next.ServeHTTP(w, r.WithContext(ctx))
	}}
}

// Expired responds to each watch with a 410 event. It forwards other requests.
func Expired() Fault {
	return Fault{
		"a watch that returns 410", func(w http.ResponseWriter, r *http.Request, asked Request, next http.Handler) {
			if asked.Verb != "watch" {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintln(
				w,
				`{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","code":410,"reason":"Expired","message":"The resourceVersion for the provided watch is too old."}}`,
			)
		},
	}
}

// Hang sends no response.
func Hang() Fault {
	return Fault{"no answer", func(_ http.ResponseWriter, r *http.Request, _ Request, _ http.Handler) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}}
}

// NotJSON responds with an HTML login page.
func NotJSON() Fault {
	return Fault{"no JSON", func(w http.ResponseWriter, _ *http.Request, _ Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html><title>Please sign in</title></html>")
	}}
}

// Huge responds with a JSON list of more than size bytes.
func Huge(size int) Fault {
	return Fault{"a huge body", func(w http.ResponseWriter, _ *http.Request, _ Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat("x", 64<<10))
		if _, err := w.Write([]byte(`{"apiVersion":"v1","kind":"List","metadata":{"continue":"`)); err != nil {
			return
		}
		for left := size; left > 0; left -= len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		_, _ = w.Write([]byte(`"},"items":[]}`))
	}}
}
