package model

import (
	"context"
	"sync"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
)

// Live is the board of a session. It keeps each cell current with a check loop. In each iteration (a Turn), the loop
// waits for a change, runs the check and records the result. The liveness of each side has its own loop. The front end
// runs the iterations by calling Next. All methods are safe for concurrent use.
type Live struct {
	Session *engine.Session
	Board   *engine.Board

	ctx      context.Context
	mu       sync.Mutex
	chains   map[steps.Cell]*chain
	liveness map[steps.Side]engine.Liveness
	plans    map[string]*forecast // by step
	moved    time.Time            // when a verdict last changed
}

// Look describes the latest check of a cell.
type Look struct {
	Began time.Time // zero if the cell was never checked
	Took  time.Duration
	Trace engine.Trace
	Asked bool // the user requested another check, which is running
}

// chain is the state of a cell's check loop.
type chain struct {
	Look
	number int                // increases when the loop restarts; turns with a lower number are obsolete
	stop   context.CancelFunc // ends the wait for a change; nil if the loop is not waiting
}

// Turn is one iteration of a check loop. It waits for a change and then runs the check.
type Turn struct {
	cell    steps.Cell
	side    steps.Side // only for the liveness loop of a side; "" for the check loop of a cell
	number  int
	wait    context.Context // nil for the first iteration, which does not wait
	trace   engine.Trace
	Changed Transition // how the previous iteration changed the state of the cell
}

// Transition is a change of a cell's state. If the state is the same as before, Was and Is are equal.
type Transition struct {
	Cell    steps.Cell
	Was, Is engine.State
}

// NewLive returns a Live whose board has no verdicts yet. All check loops end when ctx is done.
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

// Guide returns the guide of the session.
func (l *Live) Guide() *steps.Guide { return l.Session.Guide() }

// Start returns the first turn of each cell's check loop.
func (l *Live) Start() []Turn { return l.turns(l.Guide().Cells(), false) }

// LivenessTurns returns the first turn of each side's liveness loop.
func (l *Live) LivenessTurns() []Turn {
	var out []Turn
	for _, side := range steps.Sides {
		out = append(out, Turn{side: side})
	}
	return out
}

// Again runs the checks of cells again at the user's request, without cached results. Without cells it runs all checks.
// It returns the turns to run.
func (l *Live) Again(cells ...steps.Cell) []Turn {
	l.Session.Forget()
	if len(cells) == 0 {
		cells = l.Guide().Cells()
	}
	return l.turns(cells, true)
}

// turns restarts the check loops of cells and returns their first turns.
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

// Next runs a turn. It waits for a change, runs the check, puts the result on the board, and returns the next turn. If
// the loop has ended, ok is false.
func (l *Live) Next(t Turn) (next Turn, ok bool) {
	if t.wait != nil && l.Session.Changed(t.wait, t.trace) != nil {
		return t, false
	}
	if t.side != "" {
		return l.refreshLiveness(t.side), true
	}
	began := time.Now()
	r, trace := l.Session.Probe(l.ctx, t.cell)
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.chains[t.cell]
	if l.ctx.Err() != nil || t.number != k.number { // the loop was restarted, and the new loop has the newer result
		return t, false
	}
	was := l.Board.Verdict(t.cell)
	if was.Status != r.Status || was.Found != r.Found {
		l.moved = time.Now()
	}
	if t.Changed = (Transition{Cell: t.cell}); was.Status != r.Status && was.Status != steps.Pending {
		t.Changed.Was = l.Board.State(t.cell)
		l.Board.Put(t.cell, r)
		t.Changed.Is = l.Board.State(t.cell)
	} else {
		l.Board.Put(t.cell, r)
	}
	k.Look = Look{Began: began, Took: time.Since(began), Trace: trace}
	t.trace = trace
	t.wait, k.stop = context.WithCancel(l.ctx)
	return t, true
}

func (l *Live) refreshLiveness(side steps.Side) Turn {
	p, trace := l.Session.Liveness(l.ctx, side)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.liveness[side] = p
	return Turn{side: side, wait: l.ctx, trace: trace}
}

// Liveness returns the last known liveness of a side.
func (l *Live) Liveness(side steps.Side) engine.Liveness {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.liveness[side]
}

// Look returns the latest check of a cell. If the cell was never checked, it returns a zero Look.
func (l *Live) Look(c steps.Cell) Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.chains[c]; k != nil {
		return k.Look
	}
	return Look{}
}

// Quiet returns how long no verdict has changed.
func (l *Live) Quiet() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.moved)
}

// Behind counts the cells whose latest check began before at. It also counts cells for which a check requested with
// Again is still running. If at is zero, it counts the cells that have never been checked.
func (l *Live) Behind(cells []steps.Cell, at time.Time) int {
	n := 0
	for _, c := range cells {
		if k := l.Look(c); k.Began.IsZero() || k.Began.Before(at) || k.Asked && !at.IsZero() {
			n++
		}
	}
	return n
}

// Of returns the cells of a step.
func (l *Live) Of(step string) []steps.Cell {
	var out []steps.Cell
	for _, c := range l.Guide().Cells() {
		if c.Step == step {
			out = append(out, c)
		}
	}
	return out
}
