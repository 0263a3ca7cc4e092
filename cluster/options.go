package cluster

import (
	"cmp"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Options tune the tracked reads of a cluster. The zero value is what carrick
// uses on screen.
type Options struct {
	// Once makes every read one GET or LIST, kept for the life of the Cluster;
	// no watch is opened.
	Once bool

	Poll       time.Duration // between two GETs of what can't be watched; 5 s
	StaleAfter time.Duration // how long no answer may last before it is said; 3 s
	Linger     time.Duration // how long a read that nobody uses is kept current; 1 min
	Ping       time.Duration // quiet on a connection before it is asked for a sign of life; 5 s
	Silence    time.Duration // how long a sign of life, or a watch's first word, may take; 5 s
	BackoffMax time.Duration // longest pause between two attempts at one read; 5 s

	// Around is put around what every request goes through, those of As among
	// them, for who counts requests or holds them back; nil: nothing is.
	Around func(http.RoundTripper) http.RoundTripper

	Log *slog.Logger // nil: discarded
}

// usualTimeout is how long one request may take where nobody says otherwise.
const usualTimeout = 10 * time.Second

// asPatientAs returns o for a cluster whose requests may take that long. Who waits longer than usual for an answer also
// waits longer for a handshake and a sign of life.
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
