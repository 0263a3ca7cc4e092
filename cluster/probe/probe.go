// Package probe tests the network from this machine: name resolution, TCP ports, certificates, HTTP responses, image
// registries and WireGuard handshakes.
//
// Every function returns as soon as its context ends. A context without a deadline gets a timeout of ten seconds.
// Errors wrap the errors of packages net and tls, so errors.Is and errors.As work. Strings from the remote side are
// quoted if they contain characters that are not printable.
//
// The package does not depend on Kubernetes, and keeps no state between calls.
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

// timeout is the time limit of a probe whose context has no deadline.
const timeout = 10 * time.Second

// Resolve returns the addresses of host as this machine resolves it, sorted, IPv4 first, without duplicates. If host is
// an IP address, it returns that address. If the name does not exist, the error is a *net.DNSError with IsNotFound.
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

// TCP opens a connection to hostport and closes it. The latency is the duration of the connect alone, which is one
// round trip. It does not include name resolution.
func TCP(ctx context.Context, hostport string) (latency time.Duration, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	conn, latency, err := dial(ctx, hostport)
	if err != nil {
		return 0, fmt.Errorf("connect to %s: %w", plain(hostport), err)
	}
	return latency, conn.Close()
}

// dial connects to hostport. It also returns the duration of the successful connect.
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

// bounded adds a deadline to ctx if it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// orCause adds the cause of ctx to err if ctx has ended, because the error from a canceled dial contains only
// "operation was canceled".
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
