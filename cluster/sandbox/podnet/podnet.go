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
	leads map[netip.AddrPort]string // a pod's port to where it listens
	open  map[netip.AddrPort]map[net.Conn]bool
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
	n := &Network{Socket: socket, pods: pods, listener: listener, leads: map[netip.AddrPort]string{}, open: map[netip.AddrPort]map[net.Conn]bool{}}
	go n.accept()
	return n, nil
}

// Close ends it.
func (n *Network) Close() { _ = n.listener.Close() }

// Lead makes a pod's port lead to an address of this machine.
func (n *Network) Lead(pod string, port int, to string) error {
	at, err := address(pod, port)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads[at] = to
	return nil
}

// Forget makes a pod's ports lead nowhere, and ends the connections to them.
func (n *Network) Forget(pod string) {
	gone, err := netip.ParseAddr(pod)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for at := range n.leads {
		if at.Addr() != gone {
			continue
		}
		delete(n.leads, at)
		for conn := range n.open[at] {
			_ = conn.Close()
		}
	}
}

func address(host string, port int) (netip.AddrPort, error) {
	return netip.ParseAddrPort(net.JoinHostPort(host, strconv.Itoa(port)))
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
	to, pod, err := n.find(ask.Host)
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
	if pod.IsValid() {
		defer n.hold(pod, other)()
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	both(conn, in, other)
}

// find returns where an address leads, and the pod's port where it is one.
func (n *Network) find(host string) (to string, pod netip.AddrPort, err error) {
	at, err := netip.ParseAddrPort(host)
	if err != nil || !n.pods.Contains(at.Addr()) {
		return host, netip.AddrPort{}, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if to = n.leads[at]; to == "" {
		return "", at, fmt.Errorf("connection refused: nothing listens in the pod at %s", at)
	}
	return to, at, nil
}

// hold keeps a connection to a pod's port, so that it ends with the pod.
func (n *Network) hold(pod netip.AddrPort, conn net.Conn) (release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open[pod] == nil {
		n.open[pod] = map[net.Conn]bool{}
	}
	n.open[pod][conn] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open[pod], conn)
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
