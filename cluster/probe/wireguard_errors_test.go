package probe

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A network error ends the probe immediately.
func TestHandshakeRefused(t *testing.T) {
	for network, host := range map[string]string{"udp4": "127.0.0.1", "udp6": "::1"} {
		t.Run(host, func(t *testing.T) {
			r, err := steer(t).run(t.Context(), closedPort(t, network, host), wgKey(t), wgKey(t).Public())
			if !errors.Is(err, syscall.ECONNREFUSED) || r.Sent != 1 {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

// refusing is a socket whose reads return err.
type refusing struct {
	net.Conn
	err error
}

func (r refusing) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "read", Net: "udp", Err: r.err}
}

func TestHandshakeUnreachable(t *testing.T) {
	for _, tc := range []struct {
		situation string
		want      error
		dial      func(netip.AddrPort) (net.Conn, error)
	}{
		{"no route", syscall.ENETUNREACH, func(netip.AddrPort) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "udp", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
		}},
		{"a firewall says no", syscall.EHOSTUNREACH, func(to netip.AddrPort) (net.Conn, error) {
			socket, err := dialUDP(to)
			return refusing{socket, os.NewSyscallError("read", syscall.EHOSTUNREACH)}, err
		}},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			look := steer(t)
			look.dial = tc.dial
			if _, err := look.run(look.ctx, datagrams(t, mute), wgKey(t), wgKey(t).Public()); !errors.Is(err, tc.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestHandshakeNeverBegun(t *testing.T) {
	own, peer := wgKey(t), wgKey(t).Public()
	var dns *net.DNSError
	for _, tc := range []struct {
		situation, address string
		own                PrivateKey
		peer               PublicKey
		is                 func(error) bool
		text               string
	}{
		{
			"the name does not resolve", "no such host.invalid:51820", own, peer,
			func(err error) bool { return errors.As(err, &dns) }, "resolve",
		},
		{"no port", "192.0.2.1", own, peer, nil, "missing port"},
		{"no number", "192.0.2.1:wireguard", own, peer, nil, "wireguard is not a port"},
		{"port 0", "192.0.2.1:0", own, peer, nil, "0 is not a port"},
		{"our own key as the peer's", "192.0.2.1:51820", own, own.Public(), isErrKey, "same as ours"},
		{"no private key", "192.0.2.1:51820", PrivateKey{}, peer, isErrKey, "private key is missing"},
		{"no public key", "192.0.2.1:51820", own, PublicKey{}, isErrKey, "low-order"},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			r, err := Handshake(t.Context(), tc.address, tc.own, tc.peer)
			if err == nil || tc.is != nil && !tc.is(err) || !strings.Contains(err.Error(), tc.text) || r.Sent != 0 {
				t.Errorf("got %+v, %v", r, err)
			}
			if err != nil && strings.Contains(err.Error(), hex.EncodeToString(own.Reveal())) {
				t.Error("the error shows the private key")
			}
		})
	}
}

func isErrKey(err error) bool { return errors.Is(err, ErrKey) }

// expired is a context whose deadline passes when the test closes a channel.
type expired struct {
	context.Context
	now chan struct{}
}

func (e expired) Done() <-chan struct{} { return e.now }

func (e expired) Err() error {
	select {
	case <-e.now:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestHandshakeContext(t *testing.T) {
	own, peer := wgKey(t), wgKey(t).Public()
	t.Run("the caller goes while it waits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		silent := datagrams(t, func([]byte, func([]byte)) { cancel() })
		_, err := Handshake(ctx, silent, own, peer)
		var unanswered *NoAnswerError
		if !errors.Is(err, context.Canceled) || errors.As(err, &unanswered) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the caller has gone", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, err := Handshake(ctx, "127.0.0.1:9", own, peer)
		if !errors.Is(err, context.Canceled) || r.Sent != 0 {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("the caller's time is up", func(t *testing.T) {
		ctx := expired{t.Context(), make(chan struct{})}
		silent := datagrams(t, func([]byte, func([]byte)) { close(ctx.now) })
		_, err := steer(t).run(ctx, silent, own, peer)
		var unanswered *NoAnswerError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &unanswered) || unanswered.Sent != 1 {
			t.Errorf("error %v", err)
		}
	})
}

// Without a shorter deadline, the probe lasts six seconds and sends more than one initiation.
func TestHandshakePatience(t *testing.T) {
	if testing.Short() {
		t.Skip("six seconds long")
	}
	t.Parallel()
	_, err := Handshake(t.Context(), datagrams(t, mute), wgKey(t), wgKey(t).Public())
	var unanswered *NoAnswerError
	if !errors.As(err, &unanswered) || errors.Is(err, context.DeadlineExceeded) || unanswered.Sent < 2 {
		t.Errorf("error %v", err)
	}
}
