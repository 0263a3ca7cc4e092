package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"carrick/steps"
)

// Selection selects the cells of a run. The zero value selects all cells.
type Selection struct {
	Side       steps.Side
	Only, Skip []string // names of steps or checks
}

// Cells returns the selected cells, in the order of the guide.
func (s *Session) Cells(p Selection) []steps.Cell {
	var out []steps.Cell
	for _, c := range s.guide.Cells() {
		if (p.Side == "" || p.Side == c.Side) &&
			(len(p.Only) == 0 || slices.Contains(p.Only, c.Check) || slices.Contains(p.Only, c.Step)) &&
			!slices.Contains(p.Skip, c.Check) && !slices.Contains(p.Skip, c.Step) {
			out = append(out, c)
		}
	}
	return out
}

// Seen is one result of one cell.
type Seen struct {
	Cell   steps.Cell
	Result steps.Result
	Look   Look
	trace  Trace
}

// Look probes the given cells and the cells that they need. It probes each cell once, concurrently.
func (s *Session) Look(ctx context.Context, cells []steps.Cell) (*Board, map[steps.Cell]Look) {
	b, looks := NewBoard(s.guide), map[steps.Cell]Look{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, c := range s.guide.WithNeeds(cells) {
		wg.Go(func() {
			seen := s.look(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			b.Put(c, seen.Result)
			looks[c] = seen.Look
		})
	}
	wg.Wait()
	return b, looks
}

func (s *Session) look(ctx context.Context, c steps.Cell) Seen {
	start := time.Now()
	r, t := s.Probe(ctx, c)
	at, _ := t.Seen()
	if at.IsZero() {
		at = start
	}
	return Seen{c, r, Look{At: at, Duration: time.Since(start)}, t}
}

// Follow probes the given cells and the cells that they need. It probes a cell again whenever something that the last
// probe used has changed. After each result it passes the current board to the callback on. The calls never overlap.
// Follow returns when the callback returns false or ctx is done.
func (s *Session) Follow(
	ctx context.Context, cells []steps.Cell, on func(*Board, map[steps.Cell]Look, steps.Cell) bool,
) error {
	ctx, cancel := context.WithCancel(ctx)
	seen := make(chan Seen)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, c := range s.guide.WithNeeds(cells) {
		wg.Go(func() { s.chain(ctx, c, seen) })
	}
	b, looks := NewBoard(s.guide), map[steps.Cell]Look{}
	for {
		select {
		case n := <-seen:
			b.Put(n.Cell, n.Result)
			looks[n.Cell] = n.Look
			if !on(b, looks, n.Cell) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// chain probes one cell repeatedly. After each probe it reports the result and waits for a change.
func (s *Session) chain(ctx context.Context, c steps.Cell, to chan<- Seen) {
	for {
		n := s.look(ctx, c)
		select {
		case to <- n:
		case <-ctx.Done():
			return
		}
		if s.Changed(ctx, n.trace) != nil {
			return
		}
	}
}
