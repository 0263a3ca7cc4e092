package cluster

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// gate lets one request through until the first connection stands, so that a
// burst shares one HTTP/2 connection instead of opening one each. Once a
// connection stands it is open, whatever that speaks; when the last one closes
// it shuts. The zero value with next set is ready.
type gate struct {
	next http.RoundTripper

	mu     sync.Mutex
	open   bool
	leader bool            // a request is on its way to open it
	turned []chan struct{} // waiters, closed when open or leader changes
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	leads, err := g.enter(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	if !leads {
		return g.next.RoundTrip(req)
	}
	defer g.leave()
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { g.unlock() },
	})
	return g.next.RoundTrip(req.WithContext(ctx))
}

// enter waits until the gate is open, or makes the caller the one who opens it.
func (g *gate) enter(ctx context.Context) (leads bool, err error) {
	for {
		g.mu.Lock()
		if g.open {
			g.mu.Unlock()
			return false, nil
		}
		if !g.leader {
			g.leader = true
			g.mu.Unlock()
			return true, nil
		}
		turn := make(chan struct{})
		g.turned = append(g.turned, turn)
		g.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (g *gate) unlock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
	g.turn()
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leader = false
	g.turn()
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = false
}

func (g *gate) turn() {
	for _, waiter := range g.turned {
		close(waiter)
	}
	g.turned = nil
}
