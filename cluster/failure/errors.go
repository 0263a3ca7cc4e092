package failure

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"carrick/cluster/clean"
)

var (
	// ErrNotServed means that the cluster serves no such kind.
	ErrNotServed = errors.New("the cluster serves no such kind")
	// ErrProxy means that a kubeconfig of somebody else leads through a proxy. This
	// machine talks to none that a stranger names.
	ErrProxy = errors.New(
		"the kubeconfig leads through a proxy of its own, which may be there for others: from this machine it is not used",
	)
	// ErrClosed means that the Cluster was closed.
	ErrClosed = errors.New("the cluster is closed")

	// ErrNoAnswer means that there was no answer since the start.
	ErrNoAnswer = errors.New("the API server has not answered yet")
	// ErrTimeout means that one request took longer than a request may.
	ErrTimeout = errors.New("the API server took too long to answer")
	// ErrNotJSON means that something else than an API server answered.
	ErrNotJSON = errors.New("the answer is not from an API server")
)

// StaleError means that the cluster, or one of its APIs, does not answer.
type StaleError struct {
	Since time.Time // of the loss
	Cause error     // why, as far as it is known
	Never bool      // there was no answer before that either
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("no answer since %s: %v", e.Since.Format(time.TimeOnly), e.Cause)
}

// Silent reports whether an error is that an API server does not answer, or not in time.
func Silent(err error) bool { return errors.As(err, new(*StaleError)) || errors.Is(err, ErrTimeout) }

// Unwrap returns the cause.
func (e *StaleError) Unwrap() error { return e.Cause }

// StillThereError says that an object that was to go is still there, and what
// holds it.
type StillThereError struct {
	What  string // "namespaces demo"
	Why   string
	Cause error
}

func (e *StillThereError) Error() string { return clean.Text(e.What + ": " + e.Why) }

// Unwrap returns why it was waited for no longer.
func (e *StillThereError) Unwrap() error { return e.Cause }

// WentSilent tells the loss of a connection that gave no sign of life, which
// took longer than anybody's patience, from one that was cut just now.
func WentSilent(err error) bool {
	return strings.Contains(err.Error(), "client connection lost")
}

// ErrPanicked is the panic of a function that was given to carrick.
var ErrPanicked = errors.New("panicked")

// ErrHeld means that a watch has no first word while the wire lives.
var ErrHeld = errors.New("the watch is held back on its way")

// ErrEnded means that a watch came to its end in good order.
var ErrEnded = errors.New("the watch ended")
