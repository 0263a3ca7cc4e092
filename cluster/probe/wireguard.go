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

// HandshakeReport is what a WireGuard handshake showed. Where there is an error it says how far the look came.
type HandshakeReport struct {
	Address  string         // as given
	Resolved netip.AddrPort // where the initiations went: the first address of Resolve
	From     netip.AddrPort // the local end of the last try
	Sent     int            // initiations, each of them one datagram
	Took     time.Duration  // from the initiation that was answered until its answer had been verified
}

// NoAnswerError says that no answer came that verifies with the peer's key. WireGuard is silent by design, so it can
// mean any of these: the datagrams don't get there or back; nothing listens, and that is not said either; the peer
// has another key; the peer doesn't know ours; the peer has seen a handshake of our key with a later time in it, as
// happens when the clock here is behind.
type NoAnswerError struct {
	Sent   int           // initiations
	Over   time.Duration // from the first of them until the look ended
	Strays int           // datagrams that came from the peer's address and don't verify
}

func (e *NoAnswerError) Error() string {
	text := fmt.Sprintf("no answer to %d initiations in %s", e.Sent, e.Over.Round(100*time.Millisecond))
	if e.Sent == 1 {
		text = "no answer to one initiation in " + e.Over.Round(time.Millisecond).String()
	}
	switch e.Strays {
	case 0:
	case 1:
		text += "; 1 datagram came from there, and it does not verify with the peer's key"
	default:
		text += fmt.Sprintf("; %d datagrams came from there, and none verifies with the peer's key", e.Strays)
	}
	return text
}

// Handshake tries a WireGuard handshake with address (host:port) as the initiator, with the private key own, and
// believes an answer only from the holder of the private key of peer. It sends initiations and nothing else: no
// session is begun, the peer counts no handshake, and keys that a tunnel uses stay in use.
//
// It lasts six seconds at most, or until ctx ends. The first initiation goes at once, another every 1.3 seconds.
// Everything it opened is closed when it returns.
//
// The errors: a *net.DNSError when the host does not resolve; syscall.ENETUNREACH or EHOSTUNREACH when there is no way
// there, or a router or firewall says so; syscall.ECONNREFUSED when it says that nothing listens at the port; ErrKey;
// a *NoAnswerError; and why ctx ended, if it did.
//
// A caller who uses the key of a tunnel that is up should know: from the initiation on, the peer sends what it has for
// that key to here, until it next hears from the key's owner; and it answers no handshake of the owner that bears an
// earlier time than ours did, which matters when the clock here is ahead.
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

// errPatience is why a look's context ends when the caller's does not.
var errTimeout = errors.New("six seconds are over")

// handshake is one look. WireGuard's own second initiation comes only after five seconds, so another try, with a device
// of its own, begins whenever again says so. All stay open until the end: a late answer counts.
type handshake struct {
	again <-chan time.Time
	dial  func(netip.AddrPort) (net.Conn, error)

	sent, strays atomic.Int32
}

// outcome is what decides a look: a handshake on one try, or an error of the network.
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
		return r, orCause(ctx, errors.New("not begun"))
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
			t.tell(outcome{err: h.silence(ctx, time.Since(start))}) // unless something came in the same moment
			o = <-outcomes
		}
		if o.err == nil {
			r.Took, o.err = o.took, o.by.verify()
		}
		return r, o.err
	}
}

// silence is the error of a look that ended without an outcome. One that was called off proves nothing.
func (h *handshake) silence(ctx context.Context, over time.Duration) error {
	silent := &NoAnswerError{Sent: int(h.sent.Load()), Over: over, Strays: int(h.strays.Load())}
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return silent
	case errors.Is(ctx.Err(), context.Canceled):
		return orCause(ctx, errors.New("called off"))
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

// dialUDP connects a socket: only one that is connected is told of ICMP's errors.
func dialUDP(to netip.AddrPort) (net.Conn, error) {
	return net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
}
