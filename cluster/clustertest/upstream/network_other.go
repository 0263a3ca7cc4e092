//go:build !linux

package upstream

import (
	"context"
	"errors"
	"os/exec"
	"testing"
)

// Networks is a group of network namespaces, which exist only on Linux.
type Networks struct{}

// Network is a network namespace.
type Network struct{ Address string }

// NewNetworks skips the test.
func NewNetworks(t testing.TB) *Networks {
	t.Helper()
	t.Skip("network namespaces require Linux")
	return nil
}

// Add always returns an error.
func (*Networks) Add(testing.TB) (*Network, error) { return nil, errors.ErrUnsupported }

// Forward always returns an error.
func (*Network) Forward(testing.TB, string) error { return errors.ErrUnsupported }

func (*Network) command(ctx context.Context, program string, args []string) *exec.Cmd {
	return exec.CommandContext(ctx, program, args...)
}
