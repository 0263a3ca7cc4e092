package probe

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

// try is one WireGuard device that initiates one handshake over its own socket. It implements the device's conn.Bind.
//
// When the device has verified an answer, it creates the session, sets the time of the last handshake and then sends
// the first data message (golang.zx2c4.com/wireguard: device/receive.go, RoutineHandshake). This message therefore
// shows that the handshake is complete. try does not send it to the peer.
type try struct {
	look     *handshake
	to       netip.AddrPort
	outcomes chan<- outcome

	device *device.Device
	from   netip.AddrPort

	mu     sync.Mutex
	socket net.Conn
	asked  time.Time // time of the last initiation
}

// begin starts the device, which sends the first initiation.
func (t *try) begin(own PrivateKey, peer PublicKey) error {
	t.device = device.NewDevice(
		&noTunnel{events: make(chan tun.Event), closed: make(chan struct{})}, t, device.NewLogger(device.LogLevelSilent, ""),
	)
	if err := t.device.SetPrivateKey(device.NoisePrivateKey(own.Reveal())); err != nil {
		return err
	}
	them, err := t.device.NewPeer(device.NoisePublicKey(peer))
	if err != nil {
		return err
	}
	them.SetEndpointFromPacket(t)
	if err := t.device.Up(); err != nil {
		return err
	}
	return them.SendHandshakeInitiation(false)
}

func (t *try) close() {
	if t.device != nil {
		t.device.Close()
	}
}

// verify returns nil if the device reports a completed handshake.
func (t *try) verify() error {
	var state bytes.Buffer // state also contains the private key
	defer func() { clear(state.Bytes()) }()
	if err := t.device.IpcGetOperation(&state); err != nil {
		return err
	}
	for lines := bufio.NewScanner(&state); lines.Scan(); {
		if at, ok := strings.CutPrefix(lines.Text(), "last_handshake_time_sec="); ok && at != "0" {
			return nil
		}
	}
	return errors.New("the device has a session but no handshake")
}

// tell reports an outcome. It has no effect if another outcome came first.
func (t *try) tell(o outcome) {
	select {
	case t.outcomes <- o:
	default:
	}
}

// Open connects the socket. The device calls it once, at startup.
func (t *try) Open(uint16) ([]conn.ReceiveFunc, uint16, error) {
	socket, err := t.look.dial(t.to)
	if err != nil {
		return nil, 0, err
	}
	if local, ok := socket.LocalAddr().(*net.UDPAddr); ok {
		from := local.AddrPort()
		t.from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.socket = socket
	return []conn.ReceiveFunc{t.receive}, t.from.Port(), nil
}

// Close closes the socket, if there is one. The device also calls Close before Open.
func (t *try) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.socket == nil {
		return nil
	}
	socket := t.socket
	t.socket = nil
	return socket.Close()
}

// receive reads one datagram for the device. A network error is an outcome of the probe.
func (t *try) receive(packets [][]byte, sizes []int, from []conn.Endpoint) (int, error) {
	t.mu.Lock()
	socket := t.socket
	t.mu.Unlock()
	if socket == nil {
		return 0, net.ErrClosed
	}
	n, err := socket.Read(packets[0])
	if errors.Is(err, net.ErrClosed) {
		return 0, net.ErrClosed
	}
	if err != nil {
		t.tell(outcome{by: t, err: err})
		return 0, net.ErrClosed // the device stops receiving
	}
	t.look.strays.Add(1) // a datagram counts as stray; if it is verified, the count is not used
	sizes[0], from[0] = n, t
	return 1, nil
}

// Send sends only initiations, and drops all other messages.
func (t *try) Send(packets [][]byte, _ conn.Endpoint) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.socket == nil {
		return net.ErrClosed
	}
	for _, packet := range packets {
		switch binary.LittleEndian.Uint32(packet) {
		case device.MessageInitiationType:
			if _, err := t.socket.Write(packet); err != nil {
				t.tell(outcome{by: t, err: err})
				return err
			}
			t.asked = time.Now()
			t.look.sent.Add(1)
		case device.MessageTransportType:
			t.tell(outcome{by: t, took: time.Since(t.asked)})
		}
	}
	return nil
}

// SetMark does nothing, because the device has no mark.
func (t *try) SetMark(uint32) error { return nil }

// BatchSize returns the number of datagrams that receive and Send handle at a time.
func (t *try) BatchSize() int { return 1 }

// ParseEndpoint returns the try itself, which is the only endpoint.
func (t *try) ParseEndpoint(string) (conn.Endpoint, error) { return t, nil }

// A try implements conn.Endpoint, because it has one socket, which is connected to one address.

func (t *try) ClearSrc()           {}
func (t *try) SrcToString() string { return t.from.String() }
func (t *try) DstToString() string { return t.to.String() }
func (t *try) SrcIP() netip.Addr   { return t.from.Addr() }
func (t *try) DstIP() netip.Addr   { return t.to.Addr() }

func (t *try) DstToBytes() []byte {
	b, _ := t.to.MarshalBinary()
	return b
}

// noTunnel is a tunnel device without traffic.
type noTunnel struct {
	events chan tun.Event
	closed chan struct{}
	once   sync.Once
}

func (n *noTunnel) Read([][]byte, []int, int) (int, error) {
	<-n.closed
	return 0, os.ErrClosed
}

func (n *noTunnel) Close() error {
	n.once.Do(func() {
		close(n.events)
		close(n.closed)
	})
	return nil
}

func (n *noTunnel) Write(packets [][]byte, _ int) (int, error) { return len(packets), nil }
func (n *noTunnel) File() *os.File                             { return nil }
func (n *noTunnel) MTU() (int, error)                          { return device.DefaultMTU, nil }
func (n *noTunnel) Name() (string, error)                      { return "probe", nil }
func (n *noTunnel) Events() <-chan tun.Event                   { return n.events }
func (n *noTunnel) BatchSize() int                             { return 1 }
