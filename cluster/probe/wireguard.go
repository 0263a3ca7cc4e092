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

// HandshakeReport is the result of a WireGuard handshake. If the handshake fails, the fields that are known by then are
// set.
type HandshakeReport struct {
	Address  string         // the address that the caller passed
	Resolved netip.AddrPort // destination of the initiations: the first address from Resolve
	From     netip.AddrPort // the local address of the last attempt
	Sent     int            // number of initiations; each is one datagram
	Took     time.Duration  // time from the initiation to its verified answer
}

// NoAnswerError means that no answer was verified with the peer's key. WireGuard does not respond to invalid datagrams,
// so the cause is unknown. Possible causes: datagrams are dropped in either direction; no program listens and no ICMP
// error arrives; the peer has another key; the peer does not know our key; or the peer has already accepted a later
// timestamp from our key, for example because this machine's clock is behind.
type NoAnswerError struct {
	Sent   int           // number of initiations
	Over   time.Duration // time from the first initiation to the end of the probe
	Strays int           // number of datagrams from the peer's address that could not be verified
}

func (e *NoAnswerError) Error() string {
	text := fmt.Sprintf("no response to %d handshake initiations in %s", e.Sent, e.Over.Round(100*time.Millisecond))
	if e.Sent == 1 {
		text = "no response to one handshake initiation in " + e.Over.Round(time.Millisecond).String()
	}
	switch e.Strays {
	case 0:
	case 1:
		text += "; 1 datagram from that address does not verify with the peer's key"
	default:
		text += fmt.Sprintf("; %d datagrams from that address do not verify with the peer's key", e.Strays)
	}
	return text
}

// Handshake attempts a WireGuard handshake with address (host:port). It is the initiator and uses the private key own.
// It accepts only an answer that is verified with the public key peer. It sends only initiations. Therefore no session
// begins, the peer counts no handshake, and existing tunnels keep their keys.
//
// Handshake takes at most six seconds. It sends the first initiation immediately and another one every 1.3 seconds. It
// closes all sockets and devices before it returns.
//
// The errors: a *net.DNSError if the host cannot be resolved; syscall.ENETUNREACH or EHOSTUNREACH if there is no route,
// or if a router or firewall reports this; syscall.ECONNREFUSED if an ICMP error reports that no program listens at the
// port; ErrKey; a *NoAnswerError; and the cause of ctx if ctx has ended.
//
// If own is the key of an active tunnel, there are side effects. After an initiation, the peer sends its traffic for
// this key to this machine, until it next receives data from the key's owner. The peer also rejects later handshakes of
// the owner if their timestamps are earlier than ours. This happens if this machine's clock is ahead.
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

// errTimeout is the cause of a probe's context if the probe times out before the caller's context ends.
var errTimeout = errors.New("timed out after six seconds")

// handshake is the state of one probe. WireGuard itself repeats an initiation only after five seconds. Therefore the
// probe starts another try with a new device at every tick of again. All tries stay open until the end, so that a late
// answer counts.
type handshake struct {
	again <-chan time.Time
	dial  func(netip.AddrPort) (net.Conn, error)

	sent, strays atomic.Int32
}

// outcome is the result of a probe: a handshake of one try, or a network error.
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
	outcomes := make(chan outcome, 1) // the first outcome counts
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
			t.tell(outcome{err: h.silence(ctx, time.Since(start))}) // has no effect if an outcome arrived at the same time
			o = <-outcomes
		}
		if o.err == nil {
			r.Took, o.err = o.took, o.by.verify()
		}
		return r, o.err
	}
}

// silence returns the error for a probe without an outcome. If the probe was canceled, the missing answer proves
// nothing, so the error is the cause of ctx.
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

// dialUDP returns a connected socket, because only a connected socket receives ICMP errors.
func dialUDP(to netip.AddrPort) (net.Conn, error) {
	return net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
}
