package cluster

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// gate admits only one request until the first connection is established, so that a burst of requests shares one HTTP/2
// connection. The gate opens when a connection is established, with any protocol version, and closes when the last
// connection closes. The zero value with next set is ready to use.
type gate struct {
	next http.RoundTripper

	mu     sync.Mutex
	open   bool
	leader bool            // set while a request establishes the connection
	turned []chan struct{} // channels of waiting requests, closed when open or leader changes
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

// enter waits until the gate is open. If no other request is establishing a connection, the caller becomes the leader
// and establishes it.
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
