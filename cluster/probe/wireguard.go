package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"
)

// HandshakeReport is the result of a WireGuard handshake. With an error, it contains what was known until then.
type HandshakeReport struct {
	Address  string         // as given
	Resolved netip.AddrPort // destination of the initiations: the first address of Resolve
	From     netip.AddrPort // the local address of the last attempt
	Sent     int            // number of initiations, each of them one datagram
	Took     time.Duration  // from the answered initiation until its answer was verified
}

// NoAnswerError means that no answer verified with the peer's key. WireGuard is silent by design, so there are several
// possible causes: the datagrams are dropped in either direction; nothing listens and no ICMP error arrives; the peer
// has another key; the peer does not know our key; or the peer has seen a handshake of our key with a later timestamp,
// as happens if this machine's clock is behind.
type NoAnswerError struct {
	Sent   int           // number of initiations
	Over   time.Duration // from the first initiation until the end of the probe
	Strays int           // datagrams from the peer's address that do not verify
}

func (e *NoAnswerError) Error() string {
	text := fmt.Sprintf("no answer to %d initiations in %s", e.Sent, e.Over.Round(100*time.Millisecond))
	if e.Sent == 1 {
		text = "no answer to one initiation in " + e.Over.Round(time.Millisecond).String()
	}
	switch e.Strays {
	case 0:
	case 1:
		text += "; 1 datagram came from there that does not verify with the peer's key"
	default:
		text += fmt.Sprintf("; %d datagrams came from there that do not verify with the peer's key", e.Strays)
	}
	return text
}

// Handshake attempts a WireGuard handshake with address (host:port) as the initiator, with the private key own, and
// accepts an answer only from the holder of the private key of peer. It sends only initiations: no session begins, the
// peer counts no handshake, and the keys of an existing tunnel stay in use.
//
// It takes at most six seconds, or until ctx ends. It sends the first initiation immediately and another every 1.3
// seconds. It closes everything it opened before it returns.
//
// The errors: a *net.DNSError if the host does not resolve; syscall.ENETUNREACH or EHOSTUNREACH if there is no route,
// or a router or firewall reports so; syscall.ECONNREFUSED if an ICMP error reports that nothing listens at the port;
// ErrKey; a *NoAnswerError; and the cause of ctx if it ended.
//
// With the key of an active tunnel there are side effects. From the initiation on, the peer sends its traffic for that
// key to this machine, until it next hears from the key's owner. It also rejects handshakes of the owner that have an
// earlier timestamp than ours, which matters if this machine's clock is ahead.
func Handshake(ctx context.Context, address string, own PrivateKey, peer PublicKey) (HandshakeReport, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 6*time.Second, errTimeout)
	defer cancel()
	again := time.NewTicker(1300 * time.Millisecond)
	defer again.Stop()
	look := handshake{again: again.C, dial: dialUDP}
	report, err := look.run(ctx, address, own, peer)
	if err != nil {
		return report, fmt.Errorf("WireGuard handshake with %s: %w", plain(address), err)
	}
	return report, nil
}

// errTimeout is the cause of a probe's context if the probe timed out before the caller's context ended.
var errTimeout = errors.New("timed out after six seconds")

// handshake is one probe. WireGuard itself sends a second initiation only after five seconds. Therefore the probe
// starts another try with its own device whenever again fires. All tries stay open until the end, so that a late answer
// counts.
type handshake struct {
	again <-chan time.Time
	dial  func(netip.AddrPort) (net.Conn, error)

	sent, strays atomic.Int32
}

// outcome is the event that decides a probe: a handshake on one try, or a network error.
type outcome struct {
	by   *try
	took time.Duration
	err  error
}

func (h *handshake) run(
	ctx context.Context, address string, own PrivateKey, peer PublicKey,
) (r HandshakeReport, err error) {
	r.Address = address
	if err := own.agrees(peer); err != nil {
		return r, err
	}
	if r.Resolved, err = resolveUDP(ctx, address); err != nil {
		return r, err
	}
	if ctx.Err() != nil {
		return r, orCause(ctx, errors.New("not started"))
	}
	defer func() { r.Sent = int(h.sent.Load()) }()
	outcomes := make(chan outcome, 1) // the first decides
	for start := time.Now(); ; {
		t := &try{look: h, to: r.Resolved, outcomes: outcomes}
		defer t.close()
		if err := t.begin(own, peer); err != nil {
			return r, err
		}
		r.From = t.from
		var o outcome
		select {
		case <-h.again:
			continue
		case o = <-outcomes:
		case <-ctx.Done():
			t.tell(outcome{err: h.silence(ctx, time.Since(start))}) // unless an outcome arrived at the same moment
			o = <-outcomes
		}
		if o.err == nil {
			r.Took, o.err = o.took, o.by.verify()
		}
		return r, o.err
	}
}

// silence returns the error of a probe without an outcome. A canceled probe proves nothing.
func (h *handshake) silence(ctx context.Context, over time.Duration) error {
	silent := &NoAnswerError{Sent: int(h.sent.Load()), Over: over, Strays: int(h.strays.Load())}
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return silent
	case errors.Is(ctx.Err(), context.Canceled):
		return orCause(ctx, errors.New("canceled"))
	}
	return orCause(ctx, silent)
}

func resolveUDP(ctx context.Context, address string) (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil || port == 0 {
		return netip.AddrPort{}, fmt.Errorf("%s is not a port", plain(service))
	}
	addrs, err := Resolve(ctx, host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if len(addrs) == 0 {
		return netip.AddrPort{}, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	return netip.AddrPortFrom(addrs[0], uint16(port)), nil
}

// dialUDP connects a socket: only a connected socket receives ICMP errors.
func dialUDP(to netip.AddrPort) (net.Conn, error) {
	return net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
}
