package liqonet

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/device"
)

// The states of a Connection.
const (
	connecting = "Connecting"
	connected  = "Connected"
	lost       = "Error"
)

// Upstream pings every two seconds; a tunnel is lost after as many pings (liqotech/liqo v1.2.0,
// pkg/gateway/connection/flags.go and conncheck). That a client keeps the tunnel alive is a guess: no source found,
// upstream configures no interval.
const (
	pingEvery = 500 * time.Millisecond
	lostAfter = 5
	keepalive = 25 // seconds, of a client
)

// key is one of WireGuard's.
type key [32]byte

// wire is a running WireGuard endpoint.
type wire struct {
	device *device.Device
	link   *link
	stop   chan struct{}
	done   chan struct{}

	mu       sync.Mutex
	paired   bool      // it has, or had, a peer
	sent     uint32    // the number of the last ping
	at       time.Time // when it was sent
	answered uint32    // the number of the last one that came back, or of the last one before there was a peer
	took     time.Duration
	seen     time.Time // when that was
}

// newWire starts an endpoint on a port of loopback; 0 is any. It has no peer.
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

// peer makes somebody the only peer. A client goes to at, a server waits.
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

// back notes that a ping came back. One that waited for the handshake says
// nothing about the way.
func (w *wire) back(number uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number != w.sent {
		return
	}
	w.answered, w.seen, w.took = number, time.Now(), time.Since(w.at)
}

// fares returns the state, how long the last ping took and when that was. A tunnel that never came up is lost, too,
// once so many pings were; another peer changes nothing until pings answer or are lost.
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
