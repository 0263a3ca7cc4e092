package failure

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"carrick/cluster/clean"
)

var (
	// ErrNotServed means that the cluster does not serve the kind.
	ErrNotServed = errors.New("the cluster does not serve this kind")
	// ErrProxy means that a kubeconfig from another user requires a proxy. carrick does not connect to a proxy from such
	// a kubeconfig.
	ErrProxy = errors.New(
		"the kubeconfig names its own proxy, which is not used from this machine, because another user may have set it",
	)
	// ErrClosed means that the Cluster was closed.
	ErrClosed = errors.New("the connection to the cluster is closed")

	// ErrNoAnswer means that the API server has not answered yet.
	ErrNoAnswer = errors.New("the API server has not answered yet")
	// ErrTimeout means that the API server did not answer a request in time.
	ErrTimeout = errors.New("the API server did not answer in time")
	// ErrNotJSON means that a response does not come from an API server.
	ErrNotJSON = errors.New("the answer is not from an API server")
)

// StaleError means that the cluster, or one of its API groups, does not answer.
type StaleError struct {
	Since time.Time // start of the outage
	Cause error     // cause of the outage, as far as known
	Never bool      // the cluster has never answered
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("no answer since %s: %v", e.Since.Format(time.TimeOnly), e.Cause)
}

// Silent reports whether an error means that an API server does not answer at all, or not in time.
func Silent(err error) bool { return errors.As(err, new(*StaleError)) || errors.Is(err, ErrTimeout) }

// Unwrap returns the cause.
func (e *StaleError) Unwrap() error { return e.Cause }

// StillThereError means that a deleted object still exists. Why is the reason.
type StillThereError struct {
	What  string // "namespaces demo"
	Why   string
	Cause error
}

func (e *StillThereError) Error() string { return clean.Text(e.What + ": " + e.Why) }

// Unwrap returns why carrick stopped waiting.
func (e *StillThereError) Unwrap() error { return e.Cause }

// WentSilent reports whether a connection was lost without being closed. Only a timeout can detect this.
func WentSilent(err error) bool {
	return strings.Contains(err.Error(), "client connection lost")
}

// ErrPanicked means that a function passed to carrick panicked.
var ErrPanicked = errors.New("panicked")

// ErrHeld means that a watch receives no event although its connection works, probably because a proxy delays the
// events.
var ErrHeld = errors.New("a proxy delays the watch")

// ErrEnded means that a watch ended without an error.
var ErrEnded = errors.New("the watch ended")
