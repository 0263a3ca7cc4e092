package endpoint

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// published is an external port that forwards to a pod, like kube-proxy.
type published struct {
	listener net.Listener

	mu   sync.Mutex
	to   string // address of the target, or ""
	open map[net.Conn]bool
}

func publish(ctx context.Context, address string) (*published, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	p := &published{listener: listener, open: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

// lead forwards new connections to the address to. Open connections stay open.
func (p *published) lead(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

func (p *published) close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.Close()
	}
}

func (p *published) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.carry(conn)
	}
}

func (p *published) carry(from net.Conn) {
	defer from.Close()
	p.mu.Lock()
	address := p.to
	p.mu.Unlock()
	to, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return
	}
	defer to.Close()
	p.hold(from, true)
	defer p.hold(from, false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(to, from)
		if half, ok := to.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	_, _ = io.Copy(from, to)
	from.Close()
	<-done
}

func (p *published) hold(c net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.open[c] = true
	} else {
		delete(p.open, c)
	}
}
