package probe

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// listen serves every connection with serve until the test ends.
func listen(t *testing.T, serve func(net.Conn)) (hostport string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go serve(conn)
		}
	}()
	return l.Addr().String()
}

// blackHole returns the address of a server that accepts connections and sends nothing.
func blackHole(t *testing.T) string {
	t.Helper()
	return listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
}

// nobody returns an address at which no program listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestResolve(t *testing.T) {
	for _, tc := range []struct{ situation, host, want string }{
		{"an IPv4 address is itself", "192.0.2.7", "192.0.2.7"},
		{"an IPv6 address is itself", "2001:db8::7", "2001:db8::7"},
		{"IPv4 in IPv6 is IPv4", "::ffff:192.0.2.7", "192.0.2.7"},
		{"localhost is IPv4 first", "localhost", "127.0.0.1"},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			addrs, err := Resolve(t.Context(), tc.host)
			if err != nil || len(addrs) == 0 || addrs[0] != netip.MustParseAddr(tc.want) {
				t.Errorf("got %v, %v, want %s", addrs, err, tc.want)
			}
		})
	}
	t.Run("a name that can't be", func(t *testing.T) {
		_, err := Resolve(t.Context(), "no such host.invalid")
		if dns := (*net.DNSError)(nil); !errors.As(err, &dns) {
			t.Errorf("error %v", err)
		}
	})
}

func TestTCP(t *testing.T) {
	t.Run("something listens", func(t *testing.T) {
		latency, err := TCP(t.Context(), blackHole(t))
		if err != nil || latency <= 0 || latency > time.Minute {
			t.Errorf("got %v, %v", latency, err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		if _, err := TCP(t.Context(), nobody(t)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no port", func(t *testing.T) {
		if _, err := TCP(t.Context(), "127.0.0.1"); err == nil {
			t.Error("no error")
		}
	})
	t.Run("the caller has gone", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := TCP(ctx, blackHole(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}
