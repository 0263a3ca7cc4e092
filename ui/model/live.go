package model

import (
	"context"
	"sync"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
)

// Live is the board of a session and what keeps it current. Each cell has a
// chain: a probe, its result, the wait for a change, the next probe. So has the
// pulse of each side. The front end runs the chains, by Next. All methods may be
// called at the same time.
type Live struct {
	Session *engine.Session
	Board   *engine.Board

	ctx      context.Context
	mu       sync.Mutex
	chains   map[steps.Cell]*chain
	liveness map[steps.Side]engine.Liveness
	plans    map[string]*forecast // by step
	moved    time.Time            // when a verdict was another than the one before
}

// Look is what is known of the latest look at a cell.
type Look struct {
	Began time.Time // zero: there was none yet
	Took  time.Duration
	Trace engine.Trace
	Asked bool // the user has asked for another one, which is under way
}

// chain is how far the chain of a cell is.
type chain struct {
	Look
	number int                // of the chain; turns of an earlier one end there
	stop   context.CancelFunc // ends the wait for a change; nil: nobody waits
}

// Turn is one round of a chain: the wait for a change, then the look.
type Turn struct {
	cell   steps.Cell
	side   steps.Side // whose pulse it is; "": it is of the cell
	number int
	wait   context.Context // nil: the first round, which waits for nothing
	trace  engine.Trace
}

// NewLive is a board on which nothing was looked at yet. Everything ends with
// ctx.
func NewLive(ctx context.Context, s *engine.Session) *Live {
	l := &Live{
		Session: s, Board: engine.NewBoard(s.Guide()),
		ctx: ctx, chains: map[steps.Cell]*chain{}, liveness: map[steps.Side]engine.Liveness{}, plans: map[string]*forecast{},
	}
	for _, c := range s.Guide().Cells() {
		l.chains[c] = &chain{}
	}
	return l
}

// Guide is the guide of the session.
func (l *Live) Guide() *steps.Guide { return l.Session.Guide() }

// Start are the first turns of all cells.
func (l *Live) Start() []Turn { return l.turns(l.Guide().Cells(), false) }

// Pulses are the first turns of the pulses of both sides.
func (l *Live) LivenessTurns() []Turn {
	var out []Turn
	for _, side := range steps.Sides {
		out = append(out, Turn{side: side})
	}
	return out
}

// Again has cells looked at anew because the user asked: nothing that was kept
// counts. No cell: all.
func (l *Live) Again(cells ...steps.Cell) []Turn {
	l.Session.Forget()
	if len(cells) == 0 {
		cells = l.Guide().Cells()
	}
	return l.turns(cells, true)
}

// turns begin the chains of cells anew.
func (l *Live) turns(cells []steps.Cell, asked bool) []Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Turn
	for _, c := range cells {
		k := l.chains[c]
		k.number++
		k.Asked = asked
		if k.stop != nil {
			k.stop()
			k.stop = nil
		}
		out = append(out, Turn{cell: c, number: k.number})
	}
	return out
}

// Next waits for what a turn waits for, looks, and puts the result on the board.
// It returns the turn after it; not ok where the chain has ended.
func (l *Live) Next(t Turn) (next Turn, ok bool) {
	if t.wait != nil && l.Session.Changed(t.wait, t.trace) != nil {
		return t, false
	}
	if t.side != "" {
		return l.refreshLiveness(t.side), true
	}
	began, ok := l.begin(t)
	if !ok {
		return t, false
	}
	r, trace := l.Session.Probe(l.ctx, t.cell)
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.chains[t.cell]
	if l.ctx.Err() != nil || began.Before(k.Began) { // a later look is there already, of a later chain
		return t, false
	}
	if was := l.Board.Verdict(t.cell); was.Status != r.Status || was.Found != r.Found {
		l.moved = time.Now()
	}
	l.Board.Put(t.cell, r)
	k.Began, k.Took, k.Trace = began, time.Since(began), trace
	if t.number != k.number {
		return t, false
	}
	k.Asked = false
	t.trace = trace
	t.wait, k.stop = context.WithCancel(l.ctx)
	return t, true
}

// begin is when the look of a turn begins. It does not where a later chain has taken over: a look of the earlier one
// that began after the later one's would make that one's look count as the older.
func (l *Live) begin(t Turn) (began time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now(), t.number == l.chains[t.cell].number
}

// feel asks a side how it stands.
func (l *Live) refreshLiveness(side steps.Side) Turn {
	p, trace := l.Session.Liveness(l.ctx, side)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.liveness[side] = p
	return Turn{side: side, wait: l.ctx, trace: trace}
}

// Liveness is how a side stands, as last known.
func (l *Live) Liveness(side steps.Side) engine.Liveness {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.liveness[side]
}

// Look is the latest look at a cell.
func (l *Live) Look(c steps.Cell) Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.chains[c]; k != nil {
		return k.Look
	}
	return Look{}
}

// Quiet is for how long no verdict was another than the one before.
func (l *Live) Quiet() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.moved)
}

// Behind counts the cells that were not looked at since a moment; zero: at all.
func (l *Live) Behind(cells []steps.Cell, at time.Time) int {
	n := 0
	for _, c := range cells {
		if began := l.Look(c).Began; began.IsZero() || began.Before(at) {
			n++
		}
	}
	return n
}

// Of are the cells of a step.
func (l *Live) Of(step string) []steps.Cell {
	var out []steps.Cell
	for _, c := range l.Guide().Cells() {
		if c.Step == step {
			out = append(out, c)
		}
	}
	return out
}
