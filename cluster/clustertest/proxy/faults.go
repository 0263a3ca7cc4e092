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

// Fault is what happens to a request.
type Fault struct {
	Name  string
	serve func(w http.ResponseWriter, r *http.Request, asked Request, next http.Handler)
}

// Rule says to which requests a fault happens.
type Rule struct {
	Verbs     []string // none: all
	Resources []string // none: all
	Changes   bool     // only what may change something
	Looks     bool     // only what changes nothing
	After     int      // so many of them pass first
	Times     int      // to so many of them; 0: to all
	Fault     Fault

	seen int
}

func (r *Rule) fits(asked Request) bool {
	return (len(r.Verbs) == 0 || slices.Contains(r.Verbs, asked.Verb)) && (len(r.Resources) == 0 ||
		slices.Contains(r.Resources, asked.Resource)) &&
		(!r.Changes || asked.Changes()) && (!r.Looks || !asked.Changes())
}

// Set puts rules in the place of those that held; the first that fits counts.
// None: nothing happens to any request. What is on its way goes on as it began:
// see Cut.
func (p *Proxy) Set(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
	for i := range rules {
		p.rules = append(p.rules, &rules[i])
	}
}

// faultOf is what happens to a request; nil: nothing.
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

// Latency lets each request wait before it is passed on.
func Latency(d time.Duration) Fault {
	return Fault{"latency", func(w http.ResponseWriter, r *http.Request, _ Request, next http.Handler) {
		select {
		case <-time.After(d):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}}
}

// Reset cuts the connection before the answer.
func Reset() Fault {
	return Fault{"reset", func(_ http.ResponseWriter, r *http.Request, _ Request, _ http.Handler) { reset(r) }}
}

// ResetInBody passes a request on and cuts the connection in the middle of the
// answer.
func ResetInBody() Fault {
	return Fault{"reset in the body", func(w http.ResponseWriter, r *http.Request, _ Request, next http.Handler) {
		half(w, r, next)
		_ = http.NewResponseController(w).Flush()
		reset(r)
	}}
}

// Short passes a request on and ends the answer in good order in its middle.
func Short() Fault {
	return Fault{
		"a body that ends early",
		func(w http.ResponseWriter, r *http.Request, _ Request, next http.Handler) { half(w, r, next) },
	}
}

// half writes half of the answer; of a stream half of its first line.
func half(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	taken := &taking{header: http.Header{}, enough: cancel, stream: r.URL.Query().Get("watch") == "true"}
	func() {
		defer func() { _ = recover() }() // that it was cut short
		next.ServeHTTP(taken, r.WithContext(ctx))
	}()
	w.Header().Set("Content-Type", taken.header.Get("Content-Type"))
	w.WriteHeader(max(taken.code, http.StatusOK))
	_, _ = w.Write(taken.body.Bytes()[:taken.body.Len()/2])
}

// taking keeps an answer.
type taking struct {
	header http.Header
	code   int
	body   bytes.Buffer
	enough func()
	stream bool
}

func (t *taking) Header() http.Header  { return t.header }
func (t *taking) WriteHeader(code int) { t.code = code }
func (t *taking) Flush()               {}

func (t *taking) Write(b []byte) (int, error) {
	n, err := t.body.Write(b)
	if t.stream {
		t.enough()
	}
	return n, err
}

// Throttled is 429, with when to come again.
func Throttled(after time.Duration) Fault {
	return Fault{"429", func(w http.ResponseWriter, _ *http.Request, _ Request, _ http.Handler) {
		w.Header().Set("Retry-After", fmt.Sprint(int(after.Seconds())))
		status(w, http.StatusTooManyRequests, "TooManyRequests", "too many requests, please try again later")
	}}
}

// Broken is 500.
func Broken() Fault {
	return Fault{"500", func(w http.ResponseWriter, _ *http.Request, _ Request, _ http.Handler) {
		status(w, http.StatusInternalServerError, "InternalError", "Internal error occurred: etcdserver: request timed out")
	}}
}

// Unavailable is 503.
func Unavailable() Fault {
	return Fault{"503", func(w http.ResponseWriter, _ *http.Request, _ Request, _ http.Handler) {
		status(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the server is currently unable to handle the request")
	}}
}

// Forbidden is 403, as RBAC says it.
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

// CutWatch ends each watch in good order after a while; other requests pass.
func CutWatch(after time.Duration) Fault {
	return Fault{"a watch that is cut", func(w http.ResponseWriter, r *http.Request, asked Request, next http.Handler) {
		if asked.Verb != "watch" {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), after)
		defer cancel()
		defer func() { _ = recover() }() // the end of the answer that was broken off is an end like others
		next.ServeHTTP(w, r.WithContext(ctx))
	}}
}

// Expired answers each watch with an event that says 410; other requests pass.
func Expired() Fault {
	return Fault{"a watch that says 410", func(w http.ResponseWriter, r *http.Request, asked Request, next http.Handler) {
		if asked.Verb != "watch" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(
			w,
			`{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","code":410,"reason":"Expired","message":"The resourceVersion for the provided watch is too old."}}`,
		)
	}}
}

// Hang never answers.
func Hang() Fault {
	return Fault{"no answer", func(_ http.ResponseWriter, r *http.Request, _ Request, _ http.Handler) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}}
}

// NotJSON is somebody's login page.
func NotJSON() Fault {
	return Fault{"no JSON", func(w http.ResponseWriter, _ *http.Request, _ Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html><title>Please sign in</title></html>")
	}}
}

// Huge is an answer of so many bytes, JSON as far as it goes.
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
