package probe

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"carrick/cluster/clustertest/hostile"
)

// Only 32 bytes are accepted as a key, and no error contains the key.
func FuzzWireGuardKeys(f *testing.F) {
	f.Add([]byte(strings.Repeat("k", 32)))
	f.Add([]byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))))
	f.Add(make([]byte, 32))
	f.Add([]byte{1, 31: 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		own, err := ParsePrivateKey(raw)
		shown := fmt.Sprintf("%v %+v %#v %s %v", own, own, own, own, err)
		if len(raw) >= 16 && strings.Contains(shown, string(raw)) {
			t.Errorf("the key is shown: %s", shown)
		}
		if (err == nil) != (own != PrivateKey{}) || err != nil && !errors.Is(err, ErrKey) {
			t.Fatalf("key %v and error %v", own, err)
		}
		peer, err := ParsePublicKey(raw)
		if err != nil && !errors.Is(err, ErrKey) {
			t.Fatalf("error %v", err)
		}
		if bad := hostile.Unfit(fmt.Sprint(err, peer)); bad != "" {
			t.Error(bad)
		}
		if err == nil && len(raw) != keySize {
			t.Errorf("%d bytes are a key", len(raw))
		}
	})
}

// stranger is the remote end of a socket that does not have the peer's key. It answers each datagram with fuzzed data
// until no data is left.
type stranger struct {
	mu      sync.Mutex
	answers [][]byte
	asked   chan struct{}
	closed  chan struct{}
	once    sync.Once
}

func (s *stranger) Read(p []byte) (int, error) {
	select {
	case <-s.asked:
	case <-s.closed:
		return 0, net.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, s.answers[0])
	s.answers = s.answers[1:]
	if len(s.answers) > 0 {
		s.asked <- struct{}{}
	}
	return n, nil
}

func (s *stranger) Write(p []byte) (int, error) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (s *stranger) Close() error { s.once.Do(func() { close(s.closed) }); return nil }

func (s *stranger) LocalAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (s *stranger) RemoteAddr() net.Addr             { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
func (s *stranger) SetDeadline(time.Time) error      { return nil }
func (s *stranger) SetReadDeadline(time.Time) error  { return nil }
func (s *stranger) SetWriteDeadline(time.Time) error { return nil }

// listens is how long the fuzzer waits for an outcome. Judging an answer takes much less time.
const listens = 30 * time.Millisecond

// A peer without the gateway's key cannot complete a handshake, whatever it sends.
func FuzzWireGuardAnswers(f *testing.F) {
	response := make([]byte, 92)
	response[0] = 2
	cookie := make([]byte, 64)
	cookie[0] = 3
	data := make([]byte, 32)
	data[0] = 4
	for _, first := range [][]byte{
		response, cookie, data, {1}, {}, make([]byte, 148), []byte(hostile.Texts["clears the screen"]),
	} {
		f.Add(first, data)
	}
	own, peer := wgKey(f), wgKey(f).Public()
	f.Fuzz(func(t *testing.T, first, second []byte) {
		over := make(chan time.Time)
		them := &stranger{answers: [][]byte{first, second}, asked: make(chan struct{}, 4), closed: make(chan struct{})}
		look := handshake{again: over, dial: func(netip.AddrPort) (net.Conn, error) { return them, nil }}
		ctx, cancel := context.WithTimeoutCause(t.Context(), listens, errTimeout)
		defer cancel()
		report, err := look.run(ctx, "127.0.0.1:2", own, peer)
		if err == nil {
			t.Fatalf("a stranger is taken for the gateway: %+v", report)
		}
		if bad := hostile.Unfit(err.Error()); bad != "" {
			t.Error(bad)
		}
	})
}

// Strings in a certificate are displayed as printable text, whatever they contain.
func FuzzCertificateWords(f *testing.F) {
	key := newKey(f)
	for name, text := range hostile.Texts {
		if name != "a long line" {
			f.Add(text, "localhost", int64(0), int64(1))
		}
	}
	f.Add("rome", "a\x1b[2J.example.org", int64(1<<40), int64(-1))
	f.Fuzz(func(t *testing.T, common, host string, from, until int64) {
		cert := &x509.Certificate{
			NotBefore: time.Unix(from%(1<<40), 0), NotAfter: time.Unix(until%(1<<40), 0), DNSNames: []string{host, common},
			PublicKey: key.Public(),
		}
		cert.Subject.CommonName, cert.Issuer.CommonName = common, host
		cert.Subject.Organization = []string{host}
		_, words := CertProblem([]*x509.Certificate{cert}, x509.NewCertPool(), host, time.Unix(1e9, 0))
		if bad := hostile.Unfit(words); bad != "" || strings.Contains(words, "\n") {
			t.Errorf("%s: %q", bad, words)
		}
		for _, name := range Names(cert) {
			if bad := hostile.Unfit(name); bad != "" {
				t.Error(bad)
			}
		}
	})
}
