package stepstest

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
	"carrick/steps"
)

// Proxy stands between carrick and the API server of a side, passes bytes on
// and leaves TLS to the two ends. It makes the server as far away as it is
// told: each byte takes half a round trip.
type Proxy struct {
	URL string // of the API server, seen through the proxy

	far    atomic.Int64 // one way, in nanoseconds
	target string
	accept net.Listener
	work   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// NewProxy starts a proxy before the API server of a side; it ends with the
// test.
func NewProxy(tb testing.TB, box *clustertest.Sandbox, side steps.Side, roundTrip time.Duration) *Proxy {
	tb.Helper()
	server, err := url.Parse(box.Open(tb, string(side), cluster.Options{}).Server())
	if err != nil {
		tb.Fatal(err)
	}
	accept, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{URL: "https://" + accept.Addr().String(), target: server.Host, accept: accept, conns: map[net.Conn]bool{}}
	p.Far(roundTrip)
	p.work.Go(p.serve)
	tb.Cleanup(p.close)
	return p
}

// Far moves the server to another distance.
func (p *Proxy) Far(roundTrip time.Duration) { p.far.Store(int64(roundTrip / 2)) }

// way is how long a byte takes.
func (p *Proxy) way() time.Duration { return time.Duration(p.far.Load()) }

// Kubeconfig is the path of a copy of the admin's kubeconfig of that side that
// leads through the proxy, and its context.
func (p *Proxy) Kubeconfig(tb testing.TB, box *clustertest.Sandbox, side steps.Side) (path, context string) {
	tb.Helper()
	data, err := os.ReadFile(box.Kubeconfigs[string(side)])
	if err != nil {
		tb.Fatal(err)
	}
	k, err := cluster.ParseKubeconfig(data)
	if err != nil {
		tb.Fatal(err)
	}
	k.Server, k.TLSServerName = p.URL, "127.0.0.1"
	path = filepath.Join(tb.TempDir(), string(side)+".kubeconfig")
	if err := os.WriteFile(path, []byte(k.Bytes().Reveal()), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path, k.Name
}

func (p *Proxy) close() {
	_ = p.accept.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.work.Wait()
}

// keep notes a connection, so that close ends it; false: it is too late.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) serve() {
	for {
		client, err := p.accept.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.join(client) })
	}
}

// join passes bytes on in both directions until both have ended.
func (p *Proxy) join(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil || !p.keep(server) {
		return
	}
	defer p.drop(server)
	var both sync.WaitGroup
	// The client's kernel has its connection at once: the round trip that one
	// takes is made up for before its first byte.
	both.Go(func() { p.pass(server, client, 2*p.way()) })
	both.Go(func() { p.pass(client, server, 0) })
	both.Wait()
}

// late is what was read, and when it is due at the other end.
type late struct {
	data []byte
	due  time.Time
}

// pass carries bytes one way.
func (p *Proxy) pass(to, from net.Conn, first time.Duration) {
	onTheWay := make(chan late, 1024)
	p.work.Go(func() {
		defer close(onTheWay)
		ready := time.Now().Add(p.way() + first)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			due := time.Now().Add(p.way())
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
			continue // what is still read must not wait for ever
		}
		time.Sleep(time.Until(l.due))
		_, broken = to.Write(l.data)
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}
