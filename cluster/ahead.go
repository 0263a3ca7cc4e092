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

// serverAndCA is what has to be the same for two clusters to share connections.
type serverAndCA struct{ server, ca string }

func sharedBy(server string, ca []byte) serverAndCA {
	return serverAndCA{server, strings.TrimSpace(string(ca))}
}

// Ahead opens a connection to an address of this cluster's API server, with the
// same CA, for what As is going to make of a kubeconfig that is not known yet:
// its first request then need not wait for one. Nobody waits for it, and nothing
// goes over it but what that kubeconfig is for: API servers hang up after a
// request without credentials. An address that turns out to be another costs a
// connection that nobody uses.
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

// aheadOf is the connection that was opened ahead for a kubeconfig; nil where
// there is none. One that signs in on the connection itself, by a client
// certificate, gets its own. The caller holds the mutex.
func (c *Cluster) aheadOf(k kubeconfig.Config) *Cluster {
	if len(k.ClientCert) > 0 || k.TLSServerName != "" {
		return nil
	}
	return c.ahead[sharedBy(k.Server, k.CA)]
}

// spare is a connection that is made before it is needed.
type spare struct {
	made chan struct{} // closed when the rest is set
	conn net.Conn
	err  error
	at   time.Time
}

// spareAge is how long a server surely bears a connection on which nothing is
// said.
const spareAge = 5 * time.Second

// dialEarly makes the connection that the first request is going to need. No
// request may have been made yet.
func (c *Cluster) dialEarly(server string) {
	own, ok := c.gate.next.(*http.Transport)
	at, err := url.Parse(server)
	if !ok || err != nil {
		return
	}
	conf := &tls.Config{}
	if own.TLSClientConfig != nil {
		conf = own.TLSClientConfig.Clone() // the transport writes to its own
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

// take waits for the connection; nil where it is not to be had, or too old.
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

// dialTLS connects as a transport itself would.
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
