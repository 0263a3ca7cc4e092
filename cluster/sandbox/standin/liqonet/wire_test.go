package liqonet

import (
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

const happens = 2 * time.Minute // a handshake that was missed is tried again after five

// ends contains the two endpoints of a tunnel on loopback.
type ends struct {
	server, client *wire
	log            journal
	at             netip.AddrPort
	keys           [2]key // public, of the server and of the client
}

func newEnds(t *testing.T) *ends {
	t.Helper()
	e := &ends{}
	private := [2]key{}
	for i := range private {
		k, err := ecdh.X25519().GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		private[i], e.keys[i] = key(k.Bytes()), key(k.PublicKey().Bytes())
	}
	e.server = e.start(t, server, private[0])
	e.client = e.start(t, client, private[1])
	port := e.server.device.Bind().(*bind).socket.LocalAddr().(*net.UDPAddr).Port
	e.at = netip.AddrPortFrom(netip.MustParseAddr(loopback), uint16(port))
	return e
}

func (e *ends) start(t *testing.T, mode string, private key) *wire {
	t.Helper()
	w, err := newWire(mode, private, 0, defaultMTU, &e.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// pair configures each endpoint with the public key of its peer.
func (e *ends) pair(t *testing.T, ofServer, ofClient key) {
	t.Helper()
	if err := errors.Join(e.server.peer(ofClient, netip.AddrPort{}), e.client.peer(ofServer, e.at)); err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, w *wire, want string) {
	t.Helper()
	deadline := time.After(happens)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if state, _, _ := w.fares(); state == want {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("it is not %s", want)
		case <-tick.C:
		}
	}
}

func TestTunnelConnectsAndIsLost(t *testing.T) {
	e := newEnds(t)
	e.pair(t, e.keys[0], e.keys[1])
	until(t, e.client, connected)
	until(t, e.server, connected)
	if _, took, seen := e.client.fares(); took <= 0 || time.Since(seen) > happens {
		t.Errorf("a ping took %s, at %s", took, seen)
	}
	if err := e.server.device.Down(); err != nil {
		t.Fatal(err)
	}
	until(t, e.client, lost)
}

// TestWrongKeysAreLost creates the pairs with wrong keys before the correct pair, so that they have enough time to
// connect.
func TestWrongKeysAreLost(t *testing.T) {
	wrong, own, right := newEnds(t), newEnds(t), newEnds(t)
	wrong.pair(t, right.keys[0], wrong.keys[1])
	own.pair(t, own.keys[1], own.keys[1])
	right.pair(t, right.keys[0], right.keys[1])
	until(t, right.client, connected)
	for name, e := range map[string]*ends{"wrong": wrong, "own": own} {
		for side, w := range map[string]*wire{server: e.server, client: e.client} {
			if state, _, _ := w.fares(); state == connected {
				t.Errorf("%s key: the %s is %s", name, side, state)
			}
			until(t, w, lost)
		}
	}
}

func TestWithoutAPeerNothingIsLost(t *testing.T) {
	w := &wire{sent: 2 * lostAfter}
	if state, _, _ := w.fares(); state != connecting {
		t.Errorf("it is %s", state)
	}
}

func TestPortThatIsTaken(t *testing.T) {
	e := newEnds(t)
	if _, err := newWire(server, e.keys[0], e.at.Port(), defaultMTU, &e.log); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v", err)
	}
}

func TestNothingLeavesTheMachine(t *testing.T) {
	b := &bind{}
	if _, _, err := b.Open(0); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	to, err := b.ParseEndpoint("192.0.2.1:51840")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Send([][]byte{{1}}, to); !errors.Is(err, errElsewhere) {
		t.Errorf("got %v", err)
	}
}

func TestLogHasNoKeyAndNoRepetition(t *testing.T) {
	e := newEnds(t)
	e.pair(t, e.keys[0], e.keys[1])
	until(t, e.server, connected)
	for range 3 {
		e.log.sayf("again")
	}
	said := e.log.text()
	if strings.Count(said, "again") != 1 {
		t.Errorf("the log: %s", said)
	}
	for _, k := range e.keys {
		if strings.Contains(said, fmt.Sprintf("%x", k)) {
			t.Errorf("a key is in the log: %s", said)
		}
	}
}
