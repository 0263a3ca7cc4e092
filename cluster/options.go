package cluster

import (
	"cmp"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Options are the options of a cluster's tracked reads. The zero value has the defaults of the interactive wizard.
type Options struct {
	// Once makes every read a single GET or LIST without a watch. The result is kept until the Cluster is closed.
	Once bool

	Poll       time.Duration // poll interval for objects that cannot be watched; 0: 5 s
	StaleAfter time.Duration // time without an answer after which an outage is reported; 0: 3 s
	Linger     time.Duration // how long an unused read is kept current; 0: 1 min
	Ping       time.Duration // time without data after which a connection is pinged; 0: 5 s
	Silence    time.Duration // timeout of a ping, and of a watch's first event; 0: 5 s
	BackoffMax time.Duration // maximum pause between two attempts of one read; 0: 5 s

	// Around wraps the transport of every request, for callers that count or delay requests. It also applies to the
	// clusters that As creates. nil wraps nothing.
	Around func(http.RoundTripper) http.RoundTripper

	Log *slog.Logger // nil: discarded
}

const usualTimeout = 10 * time.Second

// withTimeoutOf returns the options for a cluster with the given request timeout. A timeout above the default also
// extends StaleAfter and Silence. With Once, every timeout does, because no screen shows old results meanwhile.
func (o Options) withTimeoutOf(timeout time.Duration) Options {
	if timeout > usualTimeout || o.Once {
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
