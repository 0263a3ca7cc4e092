package ui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
)

// The paces at which a screen asks to be drawn although nothing has come in.
// Zero: not at all.
const (
	spinning = 125 * time.Millisecond // something is under way
	counting = time.Second            // seconds are shown
	ageing   = time.Minute            // minutes are shown
)

// tickMsg is for the app: a beat is over.
type tickMsg struct{ n int }

// beat is the one clock of the screen. The zero value stands still.
type ticker struct {
	n     int           // number of the beat that is under way
	every time.Duration // its length; 0: none is
	frame int           // of the spinner
}

// at makes the beat that fast, if it is slower or stands still.
func (b *ticker) at(pace time.Duration) tea.Cmd {
	if pace == 0 || (b.every != 0 && b.every <= pace) {
		return nil
	}
	b.n++
	b.every = pace
	n := b.n
	return tea.Tick(pace, func(time.Time) tea.Msg { return tickMsg{n} })
}

// over ends a beat; the one of an earlier pace is nobody's.
func (b *ticker) over(msg tickMsg) {
	if msg.n != b.n {
		return
	}
	if b.every == spinning {
		b.frame++
	}
	b.every = 0
}

// spin is the sign of something under way.
func (b *ticker) spin() string { return spinner[b.frame%len(spinner)] }

// faster is the quicker of two paces.
func faster(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// waited is how long something has been waited for, and how long it may take at
// most: "12 s of 2 min".
func waited(d, within time.Duration) string {
	if within <= 0 {
		return span(d)
	}
	return span(d) + " of " + span(within)
}

// foundOf is what a cell says; of one that waits first for how long it has, and
// for how long at most.
func (a *app) foundOf(c steps.Cell) string {
	r := a.live.Board.Verdict(c)
	found := oneLine(r.Says())
	check, _ := a.live.Guide().Check(c.Check)
	if r.Status != steps.Waiting || r.Since.IsZero() || check == nil {
		return found
	}
	return waited(a.now().Sub(r.Since), check.Timeout) + ": " + found
}
