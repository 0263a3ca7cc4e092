package probe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
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

// gateway is a real WireGuard device that listens, and knows the given peers.
type gateway struct {
	*device.Device
	key  PrivateKey
	port string
}

func newGateway(t testing.TB, tunnel tun.Device, peers ...PublicKey) gateway {
	t.Helper()
	g := gateway{Device: device.NewDevice(tunnel, conn.NewStdNetBind(), device.NewLogger(device.LogLevelSilent, "")), key: wgKey(t)}
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

// says is a value of the device's state.
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

// datagrams gives every datagram to each, with a way to answer its sender, until the test ends.
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

// mute says nothing.
func mute([]byte, func([]byte)) {}

// closedPort is a UDP port of loopback where nothing listens.
func closedPort(t *testing.T, network, host string) string {
	t.Helper()
	socket, err := net.ListenPacket(network, net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skipf("no %s here: %v", host, err)
	}
	defer socket.Close()
	return socket.LocalAddr().String()
}

// brief is a look that is soon over.
func brief() *handshake {
	return &handshake{every: 40 * time.Millisecond, whole: 200 * time.Millisecond, dial: dialUDP}
}

func TestHandshake(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		t.Run(host, func(t *testing.T) {
			if host == "::1" {
				closedPort(t, "udp6", host) // skips where there is no IPv6
			}
			own := wgKey(t)
			g := newGateway(t, nothing(), own.Public())
			r, err := Handshake(t.Context(), g.at(host), own, g.key.Public())
			if err != nil {
				t.Fatal(err)
			}
			if r.Address != g.at(host) || !r.Resolved.Addr().IsLoopback() || fmt.Sprint(r.Resolved.Port()) != g.port {
				t.Errorf("it looked at %s, which is %s, not at port %s", r.Address, r.Resolved, g.port)
			}
			if !r.From.Addr().IsLoopback() || r.From.Port() == 0 || r.Sent != 1 || r.Took <= 0 || r.Took > time.Second {
				t.Errorf("got %+v", r)
			}
			if at := g.says(t, "last_handshake_time_sec"); at != "0" {
				t.Errorf("the gateway counts a handshake at %s, so a session was begun", at)
			}
			if got := g.says(t, "rx_bytes"); got != fmt.Sprint(device.MessageInitiationSize) {
				t.Errorf("the gateway took %s bytes, not one initiation's", got)
			}
		})
	}
}

// A look that is not answered ends in time, and says what was sent.
func TestHandshakeNoAnswer(t *testing.T) {
	own, stranger := wgKey(t), wgKey(t)
	g := newGateway(t, nothing(), own.Public())
	garbage := datagrams(t, func(ask []byte, answer func([]byte)) {
		response, cookie := bytes.Repeat([]byte{7}, device.MessageResponseSize), make([]byte, device.MessageCookieReplySize)
		copy(response, []byte{device.MessageResponseType, 0, 0, 0})
		copy(cookie, []byte{device.MessageCookieReplyType, 0, 0, 0})
		for _, bad := range [][]byte{response, cookie, ask, []byte("HTTP/1.1 400 Bad Request\r\n"), {1}, {}} {
			answer(bad)
		}
	})
	for _, tc := range []struct {
		situation, address string
		own                PrivateKey
		peer               PublicKey
		strays             bool
	}{
		{"nobody says a word", datagrams(t, mute), own, g.key.Public(), false},
		{"the peer has another key", g.at("127.0.0.1"), own, stranger.Public(), false},
		{"the peer doesn't know our key", g.at("127.0.0.1"), stranger, g.key.Public(), false},
		{"answers that don't verify", garbage, own, g.key.Public(), true},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			start := time.Now()
			r, err := brief().run(t.Context(), tc.address, tc.own, tc.peer)
			var silent *NoAnswerError
			if !errors.As(err, &silent) {
				t.Fatalf("error %v", err)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("it took %s", took)
			}
			if silent.Sent < 2 || r.Sent != silent.Sent || silent.Over < 200*time.Millisecond || (silent.Strays > 0) != tc.strays {
				t.Errorf("%+v, report %+v", silent, r)
			}
			if got := err.Error(); !strings.HasPrefix(got, fmt.Sprintf("no answer to %d initiations in 200ms", r.Sent)) {
				t.Error(got)
			}
		})
	}
}

// On a way that loses datagrams, or is slow, more than one initiation goes out before the answer is here.
func TestHandshakeAsksAgain(t *testing.T) {
	own := wgKey(t)
	for _, situation := range []string{"the first initiation is lost", "the first answer is late"} {
		t.Run(situation, func(t *testing.T) {
			g := newGateway(t, nothing(), own.Public())
			there, err := net.Dial("udp", g.at("127.0.0.1"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { there.Close() })
			asked, buf, late := 0, make([]byte, 2000), func() {}
			forward := func(ask []byte) []byte {
				_, _ = there.Write(ask)
				n, _ := there.Read(buf)
				return buf[:max(n, 0)]
			}
			way := datagrams(t, func(ask []byte, answer func([]byte)) {
				switch asked++; {
				case situation == "the first initiation is lost" && asked > 1:
					answer(forward(ask))
				case situation == "the first answer is late" && asked == 1:
					response := forward(ask)
					late = func() { answer(response) }
				case asked == 3:
					late()
				}
			})
			look := brief()
			look.whole = 10 * time.Second
			r, err := look.run(t.Context(), way, own, g.key.Public())
			if err != nil || r.Sent < 2 || r.Took <= 0 {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func TestHandshakeRefused(t *testing.T) {
	for network, host := range map[string]string{"udp4": "127.0.0.1", "udp6": "::1"} {
		t.Run(host, func(t *testing.T) {
			address := closedPort(t, network, host)
			start := time.Now()
			r, err := Handshake(t.Context(), address, wgKey(t), wgKey(t).Public())
			if !errors.Is(err, syscall.ECONNREFUSED) || r.Sent != 1 {
				t.Errorf("got %+v, %v", r, err)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// refusing is a socket on which all is silent until it says err.
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
			look := &handshake{every: time.Minute, whole: time.Minute, dial: tc.dial}
			silent := datagrams(t, mute)
			if _, err := look.run(t.Context(), silent, wgKey(t), wgKey(t).Public()); !errors.Is(err, tc.want) {
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
		{"the name does not resolve", "no such host.invalid:51820", own, peer, func(err error) bool { return errors.As(err, &dns) }, "resolve"},
		{"no port", "192.0.2.1", own, peer, nil, "missing port"},
		{"no number", "192.0.2.1:wireguard", own, peer, nil, "wireguard is not a port"},
		{"port 0", "192.0.2.1:0", own, peer, nil, "0 is not a port"},
		{"our own key as the peer's", "192.0.2.1:51820", own, own.Public(), isErrKey, "our own"},
		{"no private key", "192.0.2.1:51820", PrivateKey{}, peer, isErrKey, "no private key"},
		{"no public key", "192.0.2.1:51820", own, PublicKey{}, isErrKey, "low order"},
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

func TestHandshakeContext(t *testing.T) {
	own, peer := wgKey(t), wgKey(t).Public()
	t.Run("the caller goes while it waits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		silent := datagrams(t, func([]byte, func([]byte)) { cancel() })
		start := time.Now()
		r, err := Handshake(ctx, silent, own, peer)
		var unanswered *NoAnswerError
		if !errors.Is(err, context.Canceled) || errors.As(err, &unanswered) || r.Sent != 1 {
			t.Errorf("got %+v, %v", r, err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %s", took)
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
	t.Run("the caller's time is short", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		silent := datagrams(t, mute)
		_, err := Handshake(ctx, silent, own, peer)
		var unanswered *NoAnswerError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &unanswered) || unanswered.Sent != 1 {
			t.Errorf("error %v", err)
		}
	})
}
