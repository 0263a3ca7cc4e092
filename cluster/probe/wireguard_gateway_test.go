package probe

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

func wgKey(t testing.TB) PrivateKey {
	t.Helper()
	key, err := NewPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// gateway is a real WireGuard device that listens and has the given peers.
type gateway struct {
	*device.Device
	key     PrivateKey
	port    string
	refused chan struct{} // an initiation that it refused
}

func newGateway(t testing.TB, tunnel tun.Device, peers ...PublicKey) gateway {
	t.Helper()
	g := gateway{key: wgKey(t), refused: make(chan struct{}, 100)}
	g.Device = device.NewDevice(
		tunnel, conn.NewStdNetBind(), &device.Logger{Errorf: device.DiscardLogf, Verbosef: func(format string, _ ...any) {
			if strings.Contains(format, "invalid mac1") || strings.Contains(format, "invalid initiation") {
				g.refused <- struct{}{}
			}
		}},
	)
	t.Cleanup(g.Close)
	config := fmt.Sprintf("private_key=%x\nlisten_port=0\n", g.key.Reveal())
	for _, peer := range peers {
		config += fmt.Sprintf("public_key=%x\nallowed_ip=192.0.2.2/32\n", peer[:])
	}
	if err := g.IpcSet(config); err != nil {
		t.Fatal(err)
	}
	if err := g.Up(); err != nil {
		t.Fatal(err)
	}
	g.port = g.says(t, "listen_port")
	return g
}

// says returns the value of a key in the device's state.
func (g gateway) says(t testing.TB, key string) string {
	t.Helper()
	var state bytes.Buffer
	if err := g.IpcGetOperation(&state); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(&state); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), key+"="); ok {
			return value
		}
	}
	t.Fatalf("the device says nothing of %s", key)
	return ""
}

func (g gateway) at(host string) string { return net.JoinHostPort(host, g.port) }

func nothing() tun.Device {
	return &noTunnel{events: make(chan tun.Event), closed: make(chan struct{})}
}

// datagrams passes every received datagram to each, with a function that answers its sender, until the test ends.
func datagrams(t *testing.T, each func(ask []byte, answer func([]byte))) (hostport string) {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { socket.Close(); <-done })
	go func() {
		defer close(done)
		for buf := make([]byte, 2000); ; {
			n, from, err := socket.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			each(buf[:max(n, 0)], func(answer []byte) { _, _ = socket.WriteTo(answer, from) })
		}
	}()
	return socket.LocalAddr().String()
}

// mute sends no answer.
func mute([]byte, func([]byte)) {}

// closedPort returns the address of a UDP port on loopback at which no program listens.
func closedPort(t *testing.T, network, host string) string {
	t.Helper()
	socket, err := net.ListenPacket(network, net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skipf("no %s here: %v", host, err)
	}
	defer socket.Close()
	return socket.LocalAddr().String()
}

// steered is a probe that starts another try, and ends, when the test says so.
type steered struct {
	handshake
	ctx   context.Context
	again chan time.Time
	end   context.CancelCauseFunc
}

func steer(t *testing.T) *steered {
	s := &steered{again: make(chan time.Time, 1)}
	s.handshake = handshake{again: s.again, dial: dialUDP}
	s.ctx, s.end = context.WithCancelCause(t.Context())
	t.Cleanup(func() { s.end(nil) })
	return s
}

// after ends two tries without an answer, one for each event.
func (s *steered) after(events <-chan struct{}) {
	go func() {
		for _, then := range []func(){func() { s.again <- time.Now() }, func() { s.end(errTimeout) }} {
			select {
			case <-events:
				then()
			case <-s.ctx.Done():
			}
		}
	}()
}
