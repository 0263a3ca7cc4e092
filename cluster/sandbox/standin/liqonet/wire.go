package liqonet

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/device"
)

// States of a Connection.
const (
	connecting = "Connecting"
	connected  = "Connected"
	lost       = "Error"
)

// Timing of pings. Upstream pings every two seconds. Like this fake, it considers a tunnel lost after five unanswered
// pings (liqotech/liqo v1.2.0, pkg/gateway/connection/flags.go and conncheck). The keepalive of clients is a guess: no
// source was found, and upstream configures no interval.
const (
	pingEvery = 500 * time.Millisecond
	lostAfter = 5
	keepalive = 25 // seconds; clients only
)

// key is a WireGuard key.
type key [32]byte

// wire is a running WireGuard endpoint.
type wire struct {
	device *device.Device
	link   *link
	stop   chan struct{}
	done   chan struct{}

	mu       sync.Mutex
	paired   bool      // a peer was set at least once
	sent     uint32    // number of the last ping
	at       time.Time // time of the last ping
	answered uint32    // number of the last answered ping; initially the last ping before the first peer was set
	took     time.Duration
	seen     time.Time // time of the last reply
}

// newWire starts an endpoint without a peer on a loopback port. Port 0 means any free port.
func newWire(mode string, private key, port uint16, mtu int, log *journal) (*wire, error) {
	w := &wire{stop: make(chan struct{}), done: make(chan struct{})}
	w.link = newLink(mode, mtu, w.back)
	w.device = device.NewDevice(w.link, &bind{}, &device.Logger{Verbosef: device.DiscardLogf, Errorf: log.sayf})
	err := w.device.IpcSet(fmt.Sprintf("private_key=%s\nlisten_port=%d\n", hex.EncodeToString(private[:]), port))
	if err == nil {
		err = w.device.Up()
	}
	if err != nil {
		w.device.Close()
		return nil, err
	}
	go w.pings()
	return w, nil
}

// peer replaces the peer. A client connects to at. A server waits for the client.
func (w *wire) peer(public key, at netip.AddrPort) error {
	w.mu.Lock()
	if !w.paired {
		w.paired, w.answered = true, w.sent
	}
	w.mu.Unlock()
	set := fmt.Sprintf("replace_peers=true\npublic_key=%s\nallowed_ip=0.0.0.0/0\n", hex.EncodeToString(public[:]))
	if at.IsValid() {
		set += fmt.Sprintf("endpoint=%s\npersistent_keepalive_interval=%d\n", at, keepalive)
	}
	return w.device.IpcSet(set)
}

func (w *wire) close() {
	close(w.stop)
	<-w.done
	w.device.Close()
}

func (w *wire) pings() {
	defer close(w.done)
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		w.mu.Lock()
		w.sent++
		w.at = time.Now()
		number := w.sent
		w.mu.Unlock()
		w.link.ping(number, false)
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
	}
}

// back records the reply to the latest ping. It ignores replies to older pings, which had to wait for the handshake.
func (w *wire) back(number uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number != w.sent {
		return
	}
	w.answered, w.seen, w.took = number, time.Now(), time.Since(w.at)
}

// fares returns the state, the round-trip time of the last ping and the time of its reply. A tunnel that has never
// worked is also considered lost after lostAfter unanswered pings. A new peer changes the state only when pings are
// answered or lost.
//
// Source: liqotech/liqo v1.2.0, pkg/gateway/connection/conncheck/receiver.go (InitPeer, RunDisconnectObserver).
func (w *wire) fares() (state string, took time.Duration, seen time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.paired && w.sent-w.answered > lostAfter:
		return lost, w.took, w.seen
	case w.seen.IsZero():
		return connecting, 0, time.Time{}
	}
	return connected, w.took, w.seen
}
