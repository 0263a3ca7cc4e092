package model

import (
	"slices"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
)

// Looked returns how many cells have been checked, and how many exist.
func (l *Live) Looked() (done, all int) {
	cells := l.Guide().Cells()
	return len(cells) - l.Behind(cells, time.Time{}), len(cells)
}

// State returns the overall state of a step, which is the worst state of its cells. A step with blocked cells is not
// complete, regardless of the state of its other cells.
func (l *Live) State(step string) engine.State { return worst(l.Board.Count(step)) }

// FirstCause returns the first cell that fails or is unknown independently of other cells. If there is no such cell, or
// if no part of the setup exists yet, FirstCause returns false.
func (l *Live) FirstCause() (steps.Cell, bool) {
	if holds, _ := l.Session.Standing(l.Board); holds == 0 {
		return steps.Cell{}, false
	}
	for _, t := range l.Board.Troubles() {
		if t.Root && t.Result.Status != steps.Warn {
			return t.Cell, true
		}
	}
	return steps.Cell{}, false
}

// FirstOpen returns the index of the step to continue with. This is the step of the first cause. Without a cause it is
// the first step that is not green, or else the last step.
func (l *Live) FirstOpen() int {
	all := l.Guide().Steps
	if c, ok := l.FirstCause(); ok {
		return slices.IndexFunc(all, func(s steps.Step) bool { return s.Name == c.Step })
	}
	at := slices.IndexFunc(all, func(s steps.Step) bool { return !l.Board.Count(s.Name).Green() })
	if at < 0 {
		return len(all) - 1
	}
	return at
}

// Elsewhere returns how many cells in other steps are broken or unknown independently of other cells.
func (l *Live) Elsewhere(step string) int {
	n := 0
	for _, t := range l.Board.Troubles() {
		if t.Root && !t.ToDo && t.Result.Status != steps.Warn && t.Cell.Step != step {
			n++
		}
	}
	return n
}

// Wrong returns the cells with the given states, in the order of the states. Within a state, causes come first, in the
// order of Troubles.
func (l *Live) Wrong(states ...engine.State) []steps.Cell {
	order := map[steps.Cell]int{}
	for i, t := range l.Board.Troubles() {
		order[t.Cell] = i
	}
	var out []steps.Cell
	for _, s := range states {
		from := len(out)
		for _, c := range l.Guide().Cells() {
			if l.Board.State(c) == s {
				out = append(out, c)
			}
		}
		slices.SortStableFunc(out[from:], func(x, y steps.Cell) int { return order[x] - order[y] })
	}
	return out
}

// Due is a time at which a verdict will change, such as the expiry of a credential.
type Due struct {
	At   time.Time
	Cell steps.Cell
}

// Dues returns the times that are at least a day away, earliest first.
func (l *Live) Dues(now time.Time) []Due {
	var out []Due
	for _, c := range l.Guide().Cells() {
		if at := l.Board.Verdict(c).Again; !at.IsZero() && at.Sub(now) >= 24*time.Hour {
			out = append(out, Due{at, c})
		}
	}
	slices.SortStableFunc(out, func(x, y Due) int { return x.At.Compare(y.At) })
	return out
}

// Seen returns the time of the oldest check of a step's cells. If a cell has never been checked, it returns zero.
func (l *Live) Seen(step string) time.Time {
	var oldest time.Time
	for i, c := range l.Of(step) {
		if at := l.Look(c).Began; i == 0 || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// Follows describes how current the verdicts of a step are. It returns "live", the number of checks that are polled
// because carrick is not allowed to watch, or the number of checks that have not run yet.
func (l *Live) Follows(step string) string {
	cells, polled := l.Of(step), 0
	if pending := l.Behind(cells, time.Time{}); pending > 0 {
		return steps.Plural(pending, "check") + " to go"
	}
	for _, c := range cells {
		if _, p := l.Look(c).Trace.Seen(); p {
			polled++
		}
	}
	if polled > 0 {
		return "live, " + steps.Plural(polled, "check") + " polled"
	}
	return "live"
}
