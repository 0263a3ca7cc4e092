package ui

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// live is the board and the life of its cells. Each lives by a chain of
// commands: Probe → probedMsg → Changed → changedMsg → Probe.
type live struct {
	ctx     context.Context
	session *engine.Session
	board   *engine.Board
	looks   map[steps.Cell]*look
	pulses  map[steps.Side]engine.Pulse
}

// look is what is known of one cell, and where its chain stands.
type look struct {
	turn    int  // number of the chain; messages of an earlier one end there
	probing bool // a probe of this turn is under way
	asked   bool // because the user said so
	began   time.Time
	took    time.Duration
	trace   engine.Trace
	stop    context.CancelFunc // ends the wait for a change; nil: nobody waits
}

// probedMsg is for live: one probe is done.
type probedMsg struct {
	cell   steps.Cell
	turn   int
	began  time.Time
	took   time.Duration
	result steps.Result
	trace  engine.Trace
}

// changedMsg is for live: what a probe used has changed.
type changedMsg struct {
	cell steps.Cell
	turn int
	err  error
}

// pulsedMsg is for live: how a side stands.
type pulsedMsg struct {
	side  steps.Side
	pulse engine.Pulse
	trace engine.Trace
}

// fadedMsg is for live: it is time to ask a side again.
type fadedMsg struct {
	side steps.Side
	err  error
}

func newLive(ctx context.Context, s *engine.Session) *live {
	l := &live{
		ctx: ctx, session: s, board: engine.NewBoard(s.Guide()),
		looks: map[steps.Cell]*look{}, pulses: map[steps.Side]engine.Pulse{},
	}
	for _, c := range s.Guide().Cells() {
		l.looks[c] = &look{}
	}
	return l
}

// start begins the chain of every cell and the pulse of both sides.
func (l *live) start() tea.Cmd {
	var cmds []tea.Cmd
	for _, c := range l.session.Guide().Cells() {
		cmds = append(cmds, l.probe(c))
	}
	for _, side := range steps.Sides {
		cmds = append(cmds, l.feel(side))
	}
	return tea.Batch(cmds...)
}

// end ends the chain of a cell.
func (l *live) end(c steps.Cell) {
	k := l.looks[c]
	k.turn++
	k.probing = false
	if k.stop != nil {
		k.stop()
		k.stop = nil
	}
}

// anew starts the chain of a cell again with a probe.
func (l *live) anew(c steps.Cell) tea.Cmd {
	l.end(c)
	return l.probe(c)
}

// again looks at cells anew, because the user asked: nothing that was kept
// counts. No cell: all.
func (l *live) again(cells ...steps.Cell) tea.Cmd {
	l.session.Forget()
	if len(cells) == 0 {
		cells = l.session.Guide().Cells()
	}
	var cmds []tea.Cmd
	for _, c := range cells {
		cmds = append(cmds, l.anew(c))
		l.looks[c].asked = true
	}
	return tea.Batch(cmds...)
}

func (l *live) probe(c steps.Cell) tea.Cmd {
	k := l.looks[c]
	k.probing = true
	ctx, session, turn := l.ctx, l.session, k.turn
	return func() tea.Msg {
		began := time.Now()
		r, t := session.Probe(ctx, c)
		return probedMsg{c, turn, began, time.Since(began), r, t}
	}
}

// probed puts a result on the board, unless a later look is there already, and
// goes on with the chain.
func (l *live) probed(m probedMsg) tea.Cmd {
	k := l.looks[m.cell]
	if k == nil || l.ctx.Err() != nil || m.began.Before(k.began) {
		return nil
	}
	l.board.Put(m.cell, m.result)
	k.began, k.took, k.trace = m.began, m.took, m.trace
	if m.turn != k.turn {
		return nil
	}
	k.probing, k.asked = false, false
	ctx, stop := context.WithCancel(l.ctx)
	k.stop = stop
	session := l.session
	return func() tea.Msg { return changedMsg{m.cell, m.turn, session.Changed(ctx, m.trace)} }
}

func (l *live) changed(m changedMsg) tea.Cmd {
	k := l.looks[m.cell]
	if k == nil || m.turn != k.turn || m.err != nil {
		return nil
	}
	if k.stop != nil {
		k.stop()
		k.stop = nil
	}
	return l.probe(m.cell)
}

// feel asks a side how it stands.
func (l *live) feel(side steps.Side) tea.Cmd {
	ctx, session := l.ctx, l.session
	return func() tea.Msg {
		p, t := session.Pulse(ctx, side)
		return pulsedMsg{side, p, t}
	}
}

func (l *live) pulsed(m pulsedMsg) tea.Cmd {
	l.pulses[m.side] = m.pulse
	ctx, session := l.ctx, l.session
	return func() tea.Msg { return fadedMsg{m.side, session.Changed(ctx, m.trace)} }
}

func (l *live) faded(m fadedMsg) tea.Cmd {
	if m.err != nil {
		return nil
	}
	return l.feel(m.side)
}
