package lines

import (
	"context"
	"fmt"
	"time"

	"carrick/steps/engine"
)

type meeting struct {
	done bool
	is   engine.Preflight
	err  error
}

const (
	meetWithin = 10 * time.Second // timeout of a context's preflight
	meetFirst  = 3 * time.Second  // how long the list of contexts waits for preflights
	meetAtOnce = 8
)

// meet runs the preflights of contexts, at most meetAtOnce at a time.
func (p *sides) meet(names []string) {
	turn := make(chan struct{}, meetAtOnce)
	for _, name := range names {
		m := &meeting{}
		p.mu.Lock()
		p.met[name] = m
		p.mu.Unlock()
		go func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			ctx, cancel := context.WithTimeout(p.w.ctx, meetWithin)
			defer cancel()
			is, err := p.w.o.Preflight(ctx, name)
			p.mu.Lock()
			defer p.mu.Unlock()
			m.done, m.is, m.err = true, is, err
			close(p.news)
			p.news = make(chan struct{})
		}()
	}
}

// known waits until the preflights of the named contexts are done, but not longer than within.
func (p *sides) known(within time.Duration, names ...string) error {
	ctx, cancel := context.WithTimeout(p.w.ctx, within)
	defer cancel()
	return p.w.wait(func() string { return "the clusters to answer" }, nil, func(stop context.Context) error {
		for {
			p.mu.Lock()
			news, all := p.news, true
			for _, name := range names {
				m := p.met[name]
				all = all && (m == nil || m.done)
			}
			p.mu.Unlock()
			if all {
				return nil
			}
			select {
			case <-news:
			case <-ctx.Done():
				return nil
			case <-stop.Done():
				return nil
			}
		}
	})
}

// says describes the result of a preflight, or that there is no result yet.
func (p *sides) says(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m := p.met[name]; {
	case m == nil || !m.done:
		return "no answer yet"
	case m.err != nil:
		return m.err.Error()
	default:
		return fmt.Sprintf("answers in %d ms, %s", max(1, m.is.Latency.Milliseconds()), m.is.Version)
	}
}
