// Package podnet is the way from one control plane's API server to its pods. What an
// API server asks of the cluster (webhooks, aggregated APIs, kubelets) goes through
// it, by the API server's own egress selector (Kubernetes, KEP-1281): a Unix socket
// that takes CONNECT.
//
// A pod's address leads where a stand-in says that the pod's port is on this machine,
// and else nowhere. So pods need no address that is this machine's, any number of
// them listens on the same port, and so do those of other sandboxes. All other
// addresses are dialled as they are.
package podnet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

const (
	askWithin  = 5 * time.Second // until a client has said where it wants to go
	dialWithin = 4 * time.Second // less than a webhook is given
)

// Network is the way to the pods of one cluster.
type Network struct {
	Socket string // where the API server asks

	pods     netip.Prefix
	listener net.Listener

	mu    sync.Mutex
	leads map[netip.AddrPort]*lead // by the pod's port
}

// lead is where a pod's port is on this machine.
type lead struct {
	to   string
	open map[net.Conn]bool
}

// Start listens at a socket until Close. The addresses of pods are those of cidr.
func Start(socket, cidr string) (*Network, error) {
	pods, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for the API server's way to pods: %w", err)
	}
	n := &Network{Socket: socket, pods: pods, listener: listener, leads: map[netip.AddrPort]*lead{}}
	go n.accept()
	return n, nil
}

// Close ends it.
func (n *Network) Close() { _ = n.listener.Close() }

// Lead makes a pod's port lead to an address of this machine, until it is released:
// then it leads nowhere, and its connections end. Addresses of pods are used again, so
// what another pod has by then is left alone.
func (n *Network) Lead(pod string, port int, to string) (release func(), err error) {
	at, err := netip.ParseAddrPort(net.JoinHostPort(pod, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	l := &lead{to: to, open: map[net.Conn]bool{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads[at] = l
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.leads[at] == l {
			delete(n.leads, at)
		}
		for conn := range l.open {
			_ = conn.Close()
		}
	}, nil
}

func (n *Network) accept() {
	for {
		conn, err := n.listener.Accept()
		if err != nil {
			return
		}
		go n.serve(conn)
	}
}

// serve takes one connection where its client wants it.
func (n *Network) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(askWithin))
	in := bufio.NewReader(conn)
	ask, err := http.ReadRequest(in)
	if err != nil || ask.Method != http.MethodConnect {
		_, _ = io.WriteString(conn, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
		return
	}
	to, l, err := n.find(ask.Host)
	var other net.Conn
	if err == nil {
		other, err = (&net.Dialer{Timeout: dialWithin}).DialContext(context.Background(), "tcp", to)
	}
	if err != nil {
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 502 %s\r\nContent-Length: 0\r\n\r\n", err)
		return
	}
	defer other.Close()
	_ = conn.SetDeadline(time.Time{})
	if l != nil {
		defer n.hold(l, other)()
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	both(conn, in, other)
}

// find returns where an address leads, and the lead where it is a pod's port.
func (n *Network) find(host string) (to string, l *lead, err error) {
	at, err := netip.ParseAddrPort(host)
	if err != nil || !n.pods.Contains(at.Addr()) {
		return host, nil, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if l = n.leads[at]; l == nil {
		return "", nil, fmt.Errorf("connection refused: nothing listens in the pod at %s", at)
	}
	return l.to, l, nil
}

// hold keeps a connection to a pod's port, so that it ends with the pod.
func (n *Network) hold(l *lead, conn net.Conn) (release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.open[conn] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(l.open, conn)
	}
}

// both copies both ways until both have ended.
func both(conn net.Conn, in io.Reader, other net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(other, in)
		half(other)
	}()
	_, _ = io.Copy(conn, other)
	half(conn)
	<-done
}

// half ends what is sent on a connection, and leaves what comes.
func half(conn net.Conn) {
	if w, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
}
