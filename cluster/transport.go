package cluster

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
)

const (
	dialTimeout = 5 * time.Second
	idleTimeout = 90 * time.Second
)

// silenceKlog discards klog's output, because the terminal UI might be using stderr. klog's logger is global to the
// process and can be set only once.
var silenceKlog = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// wire tracks a cluster's open connections, and when a byte was last received on any of them.
type wire struct {
	born  time.Time
	Heard atomic.Int64 // when a byte was last received, in nanoseconds since born; 0: never
	empty func()       // called when the last connection closes

	mu    sync.Mutex
	conns map[*wiredConn]struct{} // the open connections
}

// end closes the remaining connections. A connection whose last stream has just ended does not count as idle yet, so
// closing idle connections would not close it.
func (w *wire) end() {
	w.mu.Lock()
	conns := slices.Collect(maps.Keys(w.conns))
	w.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

func (w *wire) add(c *wiredConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = struct{}{}
}

// remove removes c, and reports whether it was the last connection.
func (w *wire) remove(c *wiredConn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
	return len(w.conns) == 0
}

// lastHeard returns when a byte was last received. If no byte was received, it returns the zero time.
func (w *wire) lastHeard() time.Time {
	since := w.Heard.Load()
	if since == 0 {
		return time.Time{}
	}
	return w.born.Add(time.Duration(since))
}

type wiredConn struct {
	net.Conn
	wire   *wire
	closed sync.Once
}

func (c *wiredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.wire.Heard.Store(int64(max(1, time.Since(c.wire.born))))
	}
	return n, err
}

func (c *wiredConn) Close() error {
	c.closed.Do(func() {
		if c.wire.remove(c) {
			c.wire.empty()
		}
	})
	return c.Conn.Close()
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (w *wire) wrap(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		wired := &wiredConn{Conn: conn, wire: w}
		w.add(wired)
		return wired, nil
	}
}

func (c *Cluster) dialTimeout() time.Duration { return max(dialTimeout, c.options.Silence) }

// client creates the HTTP client of the cluster. It does not use client-go's process-wide connection cache. Therefore
// Close can close the connections, HTTP/2 can ping a silent connection, and a burst of requests can wait at the gate.
// If over is not nil, the client uses the connections of over, which must not have credentials.
func (c *Cluster) client(stderr io.Writer, over *Cluster) (*http.Client, error) {
	c.gate = &gate{}
	c.wire = &wire{born: time.Now(), empty: c.gate.shut, conns: map[*wiredConn]struct{}{}}
	if over != nil {
		c.gate, c.wire = over.gate, over.wire
	}
	dial := c.config.Dial
	if dial == nil {
		dial = (&net.Dialer{
			Timeout:         c.dialTimeout(),
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: c.options.Ping, Interval: c.options.Ping / 2, Count: 2},
		}).DialContext
	}
	c.config.Dial = c.wire.wrap(dial)
	conf, err := c.transportConfig(stderr)
	if err != nil {
		return nil, err
	}
	base := conf.Transport
	if base == nil {
		base = c.gate
		if over == nil {
			own, err := c.ownTransport(conf)
			if err != nil {
				return nil, err
			}
			c.atEnd = append(c.atEnd, own.CloseIdleConnections)
			c.gate.next = own
		}
	}
	rt, err := transport.HTTPWrappersForConfig(conf, base)
	if err != nil {
		return nil, err
	}
	if c.config.ExecProvider != nil {
		rt = apart{rt, &c.plugin}
	}
	if c.options.Around != nil {
		rt = c.options.Around(rt)
	}
	c.bodies = newBodies()
	c.bodies.next = rt
	return &http.Client{Transport: c.bodies, CheckRedirect: sameHost}, nil
}

func (c *Cluster) ownTransport(conf *transport.Config) (*http.Transport, error) {
	tlsConfig, err := transport.TLSConfigFor(conf)
	if err != nil {
		return nil, fmt.Errorf("read the certificates: %w", err)
	}
	proxy := conf.Proxy
	if proxy == nil {
		proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	own := &http.Transport{
		Proxy:               proxy,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: c.options.Silence,
		DialContext:         conf.DialHolder.Dial,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  conf.DisableCompression,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:  c.options.Ping,
			PingTimeout:      c.options.Silence,
			WriteByteTimeout: c.options.Silence,
		},
	}
	own.Protocols = new(http.Protocols)
	own.Protocols.SetHTTP1(true)
	own.Protocols.SetHTTP2(os.Getenv("DISABLE_HTTP2") == "") // the environment variable of client-go
	return own, nil
}

// sameHost allows redirects only within the API server, because credentials and responses must not reach another host.
func sameHost(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 || !sameOrigin(req.URL, via[0].URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
