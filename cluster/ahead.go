package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
)

// serverAndCA is the address and the CA of an API server. Clusters can share connections only if both are equal.
type serverAndCA struct{ server, ca string }

func sharedBy(server string, ca []byte) serverAndCA {
	return serverAndCA{server, strings.TrimSpace(string(ca))}
}

// Ahead opens a connection to server, which must be another address of the same API server, and verifies it with the
// same CA. If As is later called with a kubeconfig that has this address, the first request of the returned Cluster
// uses the connection and does not have to wait for a new one. Ahead does not block. It sends no request, because API
// servers close a connection after a request without credentials. If no kubeconfig has this address, the connection is
// never used.
func (c *Cluster) Ahead(server string) {
	at := sharedBy(server, c.CA())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ahead[at] != nil || !strings.HasPrefix(server, "https://") {
		return
	}
	stranger, err := open(
		kubeconfig.RESTConfig(kubeconfig.Config{Server: server, CA: []byte(at.ca)}), kubeconfig.Access{Timeout: c.timeout},
		c.options, nil,
	)
	if err != nil {
		return
	}
	c.ahead[at] = stranger
	stranger.dialEarly(server)
}

// aheadOf returns the cluster whose connection Ahead opened for the server in the kubeconfig, or nil if there is none.
// It returns nil for a kubeconfig with a client certificate, because the client certificate is part of the TLS
// handshake. The caller must hold c.mu.
func (c *Cluster) aheadOf(k kubeconfig.Config) *Cluster {
	if len(k.ClientCert) > 0 || k.TLSServerName != "" {
		return nil
	}
	return c.ahead[sharedBy(k.Server, k.CA)]
}

// spare is a connection that is opened before it is needed.
type spare struct {
	made chan struct{} // closed when the fields below are set
	conn net.Conn
	err  error
	at   time.Time
}

// spareAge is the maximum age of an unused connection. API servers keep an idle connection open for longer than this.
const spareAge = 5 * time.Second

// dialEarly opens the connection for the first request in advance. It must be called before the first request.
func (c *Cluster) dialEarly(server string) {
	own, ok := c.gate.next.(*http.Transport)
	at, err := url.Parse(server)
	if !ok || err != nil {
		return
	}
	conf := &tls.Config{}
	if own.TLSClientConfig != nil {
		conf = own.TLSClientConfig.Clone() // the transport modifies its configuration
	}
	conf.NextProtos = []string{"http/1.1"}
	if own.Protocols.HTTP2() {
		conf.NextProtos = []string{"h2", "http/1.1"}
	}
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, c.dialTimeout()+c.options.Silence, failure.ErrTimeout)
		defer cancel()
		return dialTLS(ctx, own.DialContext, address, conf.Clone())
	}
	first := &spare{made: make(chan struct{})}
	spares := make(chan *spare, 1)
	spares <- first
	own.DialTLSContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		select {
		case s := <-spares:
			if conn := s.take(ctx); conn != nil {
				return conn, nil
			}
		default:
		}
		return dial(ctx, address)
	}
	c.work.Go(func() {
		defer close(first.made)
		first.conn, first.err = dial(c.life, net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), "443")))
		first.at = time.Now()
	})
}

// take waits for the connection and returns it. It returns nil if connecting failed, if the connection is too old, or
// if ctx ends first.
func (s *spare) take(ctx context.Context) net.Conn {
	select {
	case <-s.made:
	case <-ctx.Done():
		return nil
	}
	if s.err != nil {
		return nil
	}
	if time.Since(s.at) > spareAge {
		_ = s.conn.Close()
		return nil
	}
	return s.conn
}

// dialTLS opens a TLS connection the way http.Transport does.
func dialTLS(ctx context.Context, dial dialer, address string, conf *tls.Config) (net.Conn, error) {
	raw, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if conf.ServerName == "" {
		conf.ServerName, _, _ = net.SplitHostPort(address)
	}
	conn := tls.Client(raw, conf)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, caused(ctx, err)
	}
	return conn, nil
}
