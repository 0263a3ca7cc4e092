package lines

import (
	"context"
	"sync"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
)

// board is the latest result of every cell. The cells of one step, and what
// they need, live on by a chain: Probe, Changed, Probe. The others are looked
// at once.
type board struct {
	ctx     context.Context
	session *engine.Session

	mu     sync.Mutex
	board  *engine.Board
	began  map[steps.Cell]time.Time // when the latest look began
	chains map[steps.Cell]*chain
	moved  chan struct{} // closed, and made anew, with every result
	last   time.Time     // when a result was another than the one before
}

// chain is what looks at one cell.
type chain struct {
	stop context.CancelFunc
	live bool
}

func newBoard(ctx context.Context, s *engine.Session) *board {
	return &board{
		ctx: ctx, session: s, board: engine.NewBoard(s.Guide()),
		began: map[steps.Cell]time.Time{}, chains: map[steps.Cell]*chain{}, moved: make(chan struct{}),
	}
}

// sweep looks once at every cell that does not live.
func (b *board) sweep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.session.Guide().Cells() {
		if k := b.chains[c]; k == nil || !k.live {
			b.begin(c, false)
		}
	}
}

// follow has the cells of a step, and all that their verdicts lean on, live;
// no others. An unknown step is none.
func (b *board) follow(step string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	want := b.closure(step)
	for c, k := range b.chains {
		if k.live && !want[c] {
			k.stop()
			delete(b.chains, c)
		}
	}
	for c := range want {
		if k := b.chains[c]; k == nil || !k.live {
			b.begin(c, true)
		}
	}
}

// again looks at cells anew; nothing that was kept counts.
func (b *board) again(cells map[steps.Cell]bool) {
	b.session.Forget()
	b.renew(cells)
}

// renew looks at cells once more. They count as not looked at until then.
func (b *board) renew(cells map[steps.Cell]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range cells {
		k := b.chains[c]
		delete(b.began, c)
		b.begin(c, k != nil && k.live)
	}
}

// begin starts the chain of a cell, in place of the one there was.
func (b *board) begin(c steps.Cell, live bool) {
	if k := b.chains[c]; k != nil {
		k.stop()
	}
	ctx, stop := context.WithCancel(b.ctx)
	b.chains[c] = &chain{stop, live}
	go func() {
		for {
			began := time.Now()
			r, t := b.session.Probe(ctx, c)
			if !b.put(ctx, c, r, began) || !live || b.session.Changed(ctx, t) != nil {
				return
			}
		}
	}()
}

// put takes a result, unless its chain has been ended.
func (b *board) put(ctx context.Context, c steps.Cell, r steps.Result, began time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	if was := b.board.Verdict(c); was.Status != r.Status || was.Found != r.Found {
		b.last = time.Now()
	}
	b.board.Put(c, r)
	b.began[c] = began
	close(b.moved)
	b.moved = make(chan struct{})
	return true
}

// closure are the cells of a step and all that their verdicts lean on.
func (b *board) closure(step string) map[steps.Cell]bool {
	out := map[steps.Cell]bool{}
	guide := b.session.Guide()
	var add func(steps.Cell)
	add = func(c steps.Cell) {
		if out[c] {
			return
		}
		out[c] = true
		for _, need := range guide.Needs(c) {
			add(need)
		}
	}
	for _, c := range guide.Cells() {
		if c.Step == step {
			add(c)
		}
	}
	return out
}

// all are the cells of the guide.
func (b *board) all() map[steps.Cell]bool {
	out := map[steps.Cell]bool{}
	for _, c := range b.session.Guide().Cells() {
		out[c] = true
	}
	return out
}

// next is closed with the next result.
func (b *board) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moved
}

func (b *board) verdict(c steps.Cell) steps.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.board.Verdict(c)
}

func (b *board) cause(c steps.Cell) (steps.Cell, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.board.Cause(c)
}

func (b *board) count(step string) engine.Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.board.Count(step)
}

// behind counts the cells that are to be looked at still, or of which the latest
// look began before a moment.
func (b *board) behind(cells map[steps.Cell]bool, at time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for c := range cells {
		if began := b.began[c]; began.IsZero() || began.Before(at) {
			n++
		}
	}
	return n
}

// quiet is for how long no result was another than the one before.
func (b *board) quiet() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.last)
}

// read lets f read the board while nobody writes.
func (b *board) read(f func(*engine.Board)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.board)
}
