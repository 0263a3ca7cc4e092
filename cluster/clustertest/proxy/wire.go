package proxy

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/kubeconfig"
)

// Wire simulates a slow network path between carrick and the API server of a side. It forwards bytes and does not
// terminate TLS, so measurements do not include the work of a proxy. It delays each byte by half of the round-trip
// time.
type Wire struct {
	URL string // the wire's address, which replaces the API server's

	far    atomic.Int64 // one-way delay in nanoseconds
	target string
	accept net.Listener
	work   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// NewWire starts a wire to the API server of a side. The wire stops when the test ends.
func NewWire(tb testing.TB, box *clustertest.Sandbox, side string, roundTrip time.Duration) *Wire {
	tb.Helper()
	server, err := url.Parse(box.Open(tb, side, cluster.Options{}).Server())
	if err != nil {
		tb.Fatal(err)
	}
	accept, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	w := &Wire{URL: "https://" + accept.Addr().String(), target: server.Host, accept: accept, conns: map[net.Conn]bool{}}
	w.Far(roundTrip)
	w.work.Go(w.serve)
	tb.Cleanup(w.close)
	return w
}

// Far changes the round-trip time.
func (w *Wire) Far(roundTrip time.Duration) { w.far.Store(int64(roundTrip / 2)) }

func (w *Wire) way() time.Duration { return time.Duration(w.far.Load()) }

// Kubeconfig writes a copy of the admin's kubeconfig of a side with the wire as its server. It returns the path and the
// context of the copy.
func (w *Wire) Kubeconfig(tb testing.TB, box *clustertest.Sandbox, side string) (path, context string) {
	tb.Helper()
	data, err := os.ReadFile(box.Kubeconfigs[side])
	if err != nil {
		tb.Fatal(err)
	}
	k, err := kubeconfig.Parse(data)
	if err != nil {
		tb.Fatal(err)
	}
	k.Server, k.TLSServerName = w.URL, "127.0.0.1"
	path = filepath.Join(tb.TempDir(), side+".kubeconfig")
	if err := os.WriteFile(path, []byte(k.Bytes().Reveal()), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path, k.Name
}

func (w *Wire) close() {
	_ = w.accept.Close()
	w.mu.Lock()
	for c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
	w.mu.Unlock()
	w.work.Wait()
}

// keep registers a connection so that close closes it. It reports whether the wire is still open.
func (w *Wire) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns == nil {
		_ = c.Close()
		return false
	}
	w.conns[c] = true
	return true
}

func (w *Wire) drop(c net.Conn) {
	_ = c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

func (w *Wire) serve() {
	for {
		client, err := w.accept.Accept()
		if err != nil {
			return
		}
		w.work.Go(func() { w.join(client) })
	}
}

// join forwards bytes in both directions until both sides have closed.
func (w *Wire) join(client net.Conn) {
	if !w.keep(client) {
		return
	}
	defer w.drop(client)
	server, err := net.Dial("tcp", w.target)
	if err != nil || !w.keep(server) {
		return
	}
	defer w.drop(server)
	var both sync.WaitGroup
	// The client's kernel accepts the connection without delay. To make up for it, the first byte is also delayed by the
	// round trip of a TCP handshake.
	both.Go(func() { w.pass(server, client, 2*w.way()) })
	both.Go(func() { w.pass(client, server, 0) })
	both.Wait()
}

// late is a chunk of data with the time at which it is delivered.
type late struct {
	data []byte
	due  time.Time
}

// pass forwards bytes in one direction.
func (w *Wire) pass(to, from net.Conn, first time.Duration) {
	onTheWay := make(chan late, 1024)
	w.work.Go(func() {
		defer close(onTheWay)
		ready := time.Now().Add(w.way() + first)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			due := time.Now().Add(w.way())
			if due.Before(ready) {
				due = ready
			}
			if n > 0 {
				onTheWay <- late{buf[:n], due}
			}
			if err != nil {
				return
			}
		}
	})
	var broken error
	for l := range onTheWay {
		if broken != nil {
			continue // discard the data, so that the reading goroutine does not block
		}
		time.Sleep(time.Until(l.due))
		_, broken = to.Write(l.data)
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}
