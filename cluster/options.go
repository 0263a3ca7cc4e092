package cluster

import (
	"cmp"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Options tune the tracked reads of a cluster. The zero value has the defaults of the interactive wizard.
type Options struct {
	// Once makes every read a single GET or LIST whose result is kept for the life of the Cluster. No watch is opened.
	Once bool

	Poll       time.Duration // interval between two GETs of an object that cannot be watched; 5 s
	StaleAfter time.Duration // how long an answer may be missing before the loss is reported; 3 s
	Linger     time.Duration // how long an unused read is kept current; 1 min
	Ping       time.Duration // how long a connection may be silent before it is pinged; 5 s
	Silence    time.Duration // timeout of a ping, or of a watch's first event; 5 s
	BackoffMax time.Duration // longest pause between two attempts of one read; 5 s

	// Around wraps the transport of every request, including those of clusters created by As, for callers that count or
	// delay requests; nil wraps nothing.
	Around func(http.RoundTripper) http.RoundTripper

	Log *slog.Logger // nil: discarded
}

// usualTimeout is the default timeout of one request.
const usualTimeout = 10 * time.Second

// withTimeoutOf returns o for a cluster with that request timeout. A timeout above the default also extends the
// timeouts of handshakes and pings.
func (o Options) withTimeoutOf(timeout time.Duration) Options {
	if timeout > usualTimeout {
		o.StaleAfter, o.Silence = max(o.StaleAfter, timeout), max(o.Silence, timeout)
	}
	return o
}

func (o Options) withDefaults() Options {
	o.Poll = cmp.Or(o.Poll, 5*time.Second)
	o.StaleAfter = cmp.Or(o.StaleAfter, 3*time.Second)
	o.Linger = cmp.Or(o.Linger, time.Minute)
	o.Ping = cmp.Or(o.Ping, 5*time.Second)
	o.Silence = cmp.Or(o.Silence, 5*time.Second)
	o.BackoffMax = cmp.Or(o.BackoffMax, 5*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}
