// Package probe looks at the network from this machine: names, ports, certificates, HTTP answers, WireGuard handshakes.
//
// Every function honours its context and ends as soon as that does. A context without a deadline is given ten seconds.
// Errors wrap what the net and tls packages said, so errors.Is and errors.As work on them. Text that comes from the
// other end is quoted wherever it holds anything but printable characters.
//
// The package knows nothing of Kubernetes, and keeps nothing between calls.
package probe

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// patience is how long a look may last when its context has no deadline.
const timeout = 10 * time.Second

// Resolve returns the addresses of host as this machine sees them: IPv4 first, each once, sorted. An IP address
// resolves to itself. A name that does not exist is a *net.DNSError with IsNotFound.
func Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.Unmap()}, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", plain(host), orCause(ctx, err))
	}
	for i, addr := range addrs {
		addrs[i] = addr.Unmap()
	}
	slices.SortFunc(addrs, func(a, b netip.Addr) int {
		return cmp.Or(cmp.Compare(a.BitLen(), b.BitLen()), a.Compare(b))
	})
	return slices.Compact(addrs), nil
}

// TCP opens a connection to hostport and closes it. The latency is that of the connect alone, without resolving the
// name: one round trip.
func TCP(ctx context.Context, hostport string) (latency time.Duration, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	conn, latency, err := dial(ctx, hostport)
	if err != nil {
		return 0, fmt.Errorf("connect to %s: %w", plain(hostport), err)
	}
	return latency, conn.Close()
}

// dial connects to hostport and says how long the connect took that won.
func dial(ctx context.Context, hostport string) (net.Conn, time.Duration, error) {
	var mu sync.Mutex
	started := map[string]time.Time{}
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		mu.Lock()
		defer mu.Unlock()
		started[address] = time.Now()
		return nil
	}}
	conn, err := dialer.DialContext(ctx, "tcp", hostport)
	if err != nil {
		return nil, 0, orCause(ctx, err)
	}
	mu.Lock()
	defer mu.Unlock()
	return conn, time.Since(started[conn.RemoteAddr().String()]), nil
}

// bounded gives ctx a deadline where it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// orCause adds to err why ctx ended, if it did: a cancelled dial says only "operation was canceled".
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
