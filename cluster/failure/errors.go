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
	// ErrProxy means that a kubeconfig of another user requires a proxy. carrick does not connect to a proxy that another
	// user names.
	ErrProxy = errors.New(
		"the kubeconfig names its own proxy, which is not used from this machine, because another user may have set it",
	)
	// ErrClosed means that the Cluster was closed.
	ErrClosed = errors.New("the cluster is closed")

	// ErrNoAnswer means that there has been no answer yet.
	ErrNoAnswer = errors.New("the API server has not answered yet")
	// ErrTimeout means that a request timed out.
	ErrTimeout = errors.New("the API server did not answer in time")
	// ErrNotJSON means that an answer does not come from an API server.
	ErrNotJSON = errors.New("the answer is not from an API server")
)

// StaleError means that the cluster, or one of its APIs, does not answer.
type StaleError struct {
	Since time.Time // when the loss began
	Cause error     // why, as far as known
	Never bool      // it has never answered
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("no answer since %s: %v", e.Since.Format(time.TimeOnly), e.Cause)
}

// Silent reports whether an error means that an API server does not answer, or not in time.
func Silent(err error) bool { return errors.As(err, new(*StaleError)) || errors.Is(err, ErrTimeout) }

// Unwrap returns the cause.
func (e *StaleError) Unwrap() error { return e.Cause }

// StillThereError means that a deleted object still exists, and says what keeps it.
type StillThereError struct {
	What  string // "namespaces demo"
	Why   string
	Cause error
}

func (e *StillThereError) Error() string { return clean.Text(e.What + ": " + e.Why) }

// Unwrap returns why the wait ended.
func (e *StillThereError) Unwrap() error { return e.Cause }

// WentSilent reports whether a connection was lost without a sign of life, so that only a timeout detected the loss. It
// returns false for a connection that was closed.
func WentSilent(err error) bool {
	return strings.Contains(err.Error(), "client connection lost")
}

// ErrPanicked means that a function passed to carrick panicked.
var ErrPanicked = errors.New("panicked")

// ErrHeld means that a watch receives no first event although its connection is alive.
var ErrHeld = errors.New("a proxy delays the watch")

// ErrEnded means that a watch ended normally.
var ErrEnded = errors.New("the watch ended")
