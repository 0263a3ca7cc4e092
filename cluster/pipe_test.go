package cluster_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// pipeLine is a listener in memory. Tests can cut or refuse its connections, or drop their data.
type pipeLine struct {
	conns chan net.Conn
	done  chan struct{}

	mu     sync.Mutex
	up     bool
	closed bool
	black  bool // what is sent is never delivered
	dials  int
	ends   map[*pipeConn]bool
}

func newPipeLine() *pipeLine {
	return &pipeLine{conns: make(chan net.Conn), done: make(chan struct{}), up: true, ends: map[*pipeConn]bool{}}
}

func (l *pipeLine) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeLine) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.done)
	}
	return nil
}

func (l *pipeLine) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 6443} }

func (l *pipeLine) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l.mu.Lock()
	l.dials++
	up, black := l.up, l.black
	l.mu.Unlock()
	if black {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if !up {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: l.Addr(), Err: syscall.ECONNREFUSED}
	}
	here, there := net.Pipe()
	conn := &pipeConn{Conn: here, line: l}
	l.mu.Lock()
	l.ends[conn] = true
	l.mu.Unlock()
	select {
	case l.conns <- there:
		return conn, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.done:
		return nil, errors.New("closed")
	}
}

// set cuts all connections and refuses new ones while up is false.
func (l *pipeLine) set(up bool) {
	l.mu.Lock()
	l.up = up
	ends := l.ends
	if !up {
		l.ends = map[*pipeConn]bool{}
	}
	l.mu.Unlock()
	if !up {
		for conn := range ends {
			_ = conn.Conn.Close()
		}
	}
}

func (l *pipeLine) setBlack(black bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.black = black
}

func (l *pipeLine) dialled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials
}

type pipeConn struct {
	net.Conn
	line *pipeLine
}

func (c *pipeConn) swallowed() bool {
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	return c.line.black
}

// Write drops the data if the line is a black hole.
func (c *pipeConn) Write(p []byte) (int, error) {
	if c.swallowed() {
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	return n, c.reset("write", err)
}

func (c *pipeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.reset("read", err)
}

// reset returns the error of a TCP connection that the server has reset, if the line was cut.
func (c *pipeConn) reset(op string, err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return &net.OpError{Op: op, Net: "tcp", Addr: c.line.Addr(), Err: syscall.ECONNRESET}
	}
	return err
}

func (c *pipeConn) RemoteAddr() net.Addr { return c.line.Addr() }
