package cluster

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotServed means that the cluster serves no such kind.
	ErrNotServed = errors.New("the cluster serves no such kind")
	// ErrProxy means that a kubeconfig of somebody else leads through a proxy. This
	// machine talks to none that a stranger names.
	ErrProxy = errors.New("the kubeconfig leads through a proxy of its own, which may be there for others: from this machine it is not used")
	// ErrClosed means that the Cluster was closed.
	ErrClosed = errors.New("the cluster is closed")

	// errNoAnswer means that there was no answer since the start.
	errNoAnswer = errors.New("the API server has not answered yet")
	// errTimeout means that one request took longer than a request may.
	errTimeout = errors.New("the API server took too long to answer")
	// errNotJSON means that something else than an API server answered.
	errNotJSON = errors.New("the answer is not from an API server")
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
func Silent(err error) bool { return errors.As(err, new(*StaleError)) || errors.Is(err, errTimeout) }

// Unwrap returns the cause.
func (e *StaleError) Unwrap() error { return e.Cause }
