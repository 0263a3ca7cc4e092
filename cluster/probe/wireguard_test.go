package probe

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/device"
)

func TestHandshake(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		t.Run(host, func(t *testing.T) {
			if host == "::1" {
				closedPort(t, "udp6", host) // skips where there is no IPv6
			}
			own := wgKey(t)
			g := newGateway(t, nothing(), own.Public())
			r, err := steer(t).run(t.Context(), g.at(host), own, g.key.Public())
			if err != nil {
				t.Fatal(err)
			}
			if r.Address != g.at(host) || !r.Resolved.Addr().IsLoopback() || fmt.Sprint(r.Resolved.Port()) != g.port {
				t.Errorf("it looked at %s, which is %s, not at port %s", r.Address, r.Resolved, g.port)
			}
			if !r.From.Addr().IsLoopback() || r.From.Port() == 0 || r.Sent != 1 || r.Took <= 0 {
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

func TestHandshakeAsCalled(t *testing.T) {
	own := wgKey(t)
	g := newGateway(t, nothing(), own.Public())
	r, err := Handshake(t.Context(), g.at("127.0.0.1"), own, g.key.Public())
	if err != nil || r.Sent < 1 || r.Took <= 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A gateway does not respond to an initiation that it rejects.
func TestHandshakeNoAnswer(t *testing.T) {
	own, stranger := wgKey(t), wgKey(t)
	heard := make(chan struct{}, 100)
	nobody := datagrams(t, func([]byte, func([]byte)) { heard <- struct{}{} })
	g := newGateway(t, nothing(), own.Public())
	for _, tc := range []struct {
		situation, address string
		own                PrivateKey
		peer               PublicKey
		refused            chan struct{}
	}{
		{"nobody says a word", nobody, own, g.key.Public(), heard},
		{"the peer has another key", g.at("127.0.0.1"), own, stranger.Public(), g.refused},
		{"the peer doesn't know our key", g.at("127.0.0.1"), stranger, g.key.Public(), g.refused},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			look := steer(t)
			look.after(tc.refused)
			r, err := look.run(look.ctx, tc.address, tc.own, tc.peer)
			var silent *NoAnswerError
			if !errors.As(err, &silent) {
				t.Fatalf("error %v", err)
			}
			if silent.Sent != 2 || r.Sent != 2 || silent.Over <= 0 || silent.Strays != 0 {
				t.Errorf("%+v, report %+v", silent, r)
			}
		})
	}
}

func TestNoAnswerError(t *testing.T) {
	for want, err := range map[string]NoAnswerError{
		"no response to one handshake initiation in 1.25s": {Sent: 1, Over: 1250 * time.Millisecond},
		"no response to 5 handshake initiations in 6s":     {Sent: 5, Over: 6004 * time.Millisecond},
		"no response to 2 handshake initiations in 2s; 1 datagram from that address does not verify with the peer's key": {
			Sent: 2, Over: 2 * time.Second, Strays: 1,
		},
		"no response to 2 handshake initiations in 2s; 3 datagrams from that address do not verify with the peer's key": {
			Sent: 2, Over: 2 * time.Second, Strays: 3,
		},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// reads calls each before every read of a socket. By then, the device has processed the earlier datagrams.
type reads struct {
	net.Conn
	each func()
}

func (r reads) Read(b []byte) (int, error) {
	r.each()
	return r.Conn.Read(b)
}

// A datagram that cannot be verified is not an answer, and is counted.
func TestHandshakeGarbage(t *testing.T) {
	read := 0
	garbage := datagrams(t, func(ask []byte, answer func([]byte)) {
		response, cookie := bytes.Repeat([]byte{7}, device.MessageResponseSize), make([]byte, device.MessageCookieReplySize)
		copy(response, []byte{device.MessageResponseType, 0, 0, 0})
		copy(cookie, []byte{device.MessageCookieReplyType, 0, 0, 0})
		for _, bad := range [][]byte{response, cookie, ask, []byte("HTTP/1.1 400 Bad Request\r\n"), {1}, {}} {
			answer(bad)
		}
	})
	look := steer(t)
	look.dial = func(to netip.AddrPort) (net.Conn, error) {
		socket, err := dialUDP(to)
		return reads{socket, func() {
			if read++; read == 7 { // six are through
				look.end(errTimeout)
			}
		}}, err
	}
	_, err := look.run(look.ctx, garbage, wgKey(t), wgKey(t).Public())
	var silent *NoAnswerError
	if !errors.As(err, &silent) || silent.Sent != 1 || silent.Strays != 6 {
		t.Errorf("error %v", err)
	}
}

// exchange sends one datagram to a gateway and returns what it answers.
func exchange(t *testing.T, g gateway, ask []byte) []byte {
	t.Helper()
	there, err := net.Dial("udp", g.at("127.0.0.1"))
	if err != nil {
		t.Error(err)
		return nil
	}
	defer there.Close()
	if _, err = there.Write(ask); err != nil {
		t.Error(err)
	}
	answer := make([]byte, 2000)
	_ = there.SetDeadline(time.Now().Add(30 * time.Second))
	n, err := there.Read(answer)
	if err != nil {
		t.Error(err)
	}
	return answer[:n]
}

// If the network loses or delays datagrams, the probe sends more than one initiation before an answer arrives.
func TestHandshakeAsksAgain(t *testing.T) {
	own := wgKey(t)
	for _, lost := range []bool{true, false} {
		t.Run(
			map[bool]string{true: "the first initiation is lost", false: "the first answer is late"}[lost], func(t *testing.T) {
				look, g := steer(t), newGateway(t, nothing(), own.Public())
				asked, late := 0, func() {}
				way := datagrams(t, func(ask []byte, answer func([]byte)) {
					switch asked++; {
					case asked == 1 && !lost:
						response := exchange(t, g, ask)
						late = func() { answer(response) }
						fallthrough
					case asked == 1:
						look.again <- time.Now()
					case lost:
						answer(exchange(t, g, ask))
					default:
						late()
					}
				})
				r, err := look.run(look.ctx, way, own, g.key.Public())
				if err != nil || r.Sent != 2 || r.Took <= 0 {
					t.Errorf("got %+v, %v", r, err)
				}
			},
		)
	}
}
