// Package podnet routes requests from a control plane to pods. The API server's egress selector (Kubernetes, KEP-1281)
// sends each request for a webhook, aggregated API or kubelet through a Unix socket. This package accepts CONNECT on that
// socket.
//
// A fake can forward a port of its pod to a port on this machine. Connections to pod ports that are not forwarded fail.
// So any number of pods can listen on the same port, even pods of other sandboxes. Connections to all other addresses
// are dialled directly.
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
	askWithin  = 5 * time.Second // timeout for the client's CONNECT request
	dialWithin = 4 * time.Second // must be less than the timeout of a webhook call
)

// Network is the route from an API server to the pods of its cluster.
type Network struct {
	Socket string // path of the Unix socket

	pods     netip.Prefix
	listener net.Listener

	mu    sync.Mutex
	leads map[netip.AddrPort]*lead // by address and port of the pod
}

// lead is the forwarding for one pod port.
type lead struct {
	to   string
	open map[net.Conn]bool
}

// Start listens on a Unix socket until Close is called. cidr must contain the addresses of all pods.
func Start(socket, cidr string) (*Network, error) {
	pods, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for the API server's connections to pods: %w", err)
	}
	n := &Network{Socket: socket, pods: pods, listener: listener, leads: map[netip.AddrPort]*lead{}}
	go n.accept()
	return n, nil
}

// Close stops listening.
func (n *Network) Close() { _ = n.listener.Close() }

// Lead forwards a pod port to an address on this machine until release is called. After release, new connections fail
// and open connections are closed. Pod addresses are reused, so release does not affect later pods with the same
// address.
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

// find returns the address to dial for host. l is nil unless host is a pod port.
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

// hold records a connection to a pod port. The function that Lead returns can then close it.
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

// both copies data in both directions until both have ended.
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

// half closes the write side of a connection.
func half(conn net.Conn) {
	if w, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
}
