package ui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
)

// These are the intervals at which a screen is redrawn without a message. Zero means never.
const (
	spinning = 125 * time.Millisecond // while a progress indicator is shown
	counting = time.Second            // while seconds are shown
	ageing   = time.Minute            // while minutes are shown
)

type tickMsg struct{ n int }

// ticker schedules all periodic redraws of the screen. The zero value is stopped.
type ticker struct {
	n     int           // number of the current tick
	every time.Duration // the current interval; 0 if stopped
	frame int           // current frame of the spinner
}

// at starts the ticker, unless it already ticks at least that often.
func (b *ticker) at(pace time.Duration) tea.Cmd {
	if pace == 0 || (b.every != 0 && b.every <= pace) {
		return nil
	}
	b.n++
	b.every = pace
	n := b.n
	return tea.Tick(pace, func(time.Time) tea.Msg { return tickMsg{n} })
}

// over handles a tick. It ignores ticks from an earlier interval.
func (b *ticker) over(msg tickMsg) {
	if msg.n != b.n {
		return
	}
	if b.every == spinning {
		b.frame++
	}
	b.every = 0
}

func (b *ticker) spin() string { return spinner[b.frame%len(spinner)] }

// faster returns the shorter of two intervals. Zero means no interval.
func faster(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// waited formats the time waited so far and the timeout, such as "12 s of 2 min".
func waited(d, within time.Duration) string {
	if within <= 0 {
		return span(d)
	}
	return span(d) + " of " + span(within)
}

// foundOf returns the finding of a cell. For a waiting cell, the time so far and the timeout come first.
func (a *app) foundOf(c steps.Cell) string {
	r := a.live.Board.Verdict(c)
	found := oneLine(r.Says())
	check, _ := a.live.Guide().Check(c.Check)
	if r.Status != steps.Waiting || r.Since.IsZero() || check == nil {
		return found
	}
	return waited(a.now().Sub(r.Since), check.Timeout) + ": " + found
}
