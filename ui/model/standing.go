package model

import (
	"slices"
	"time"

	"carrick/steps"
)

// Looked is how many cells have been looked at, of how many.
func (l *Live) Looked() (done, all int) {
	cells := l.Guide().Cells()
	return len(cells) - l.Behind(cells, time.Time{}), len(cells)
}

// State is the status of a step as a whole: its worst. A step of which some
// can't be told before another one holds is not done, whatever the rest says.
func (l *Live) State(step string) steps.Status {
	n := l.Board.Count(step)
	for _, s := range []steps.Status{steps.Fail, steps.Unknown, steps.Pending, steps.Waiting} {
		if n.Of(s) > 0 {
			return s
		}
	}
	if l.Held(step) {
		return steps.Skip
	}
	for _, s := range []steps.Status{steps.Warn, steps.Pass} {
		if n.Of(s) > 0 {
			return s
		}
	}
	return steps.Skip
}

// Held reports whether a cell of the step says nothing because of another cell
// that is not as it should be; one that is skipped for good holds nothing up.
func (l *Live) Held(step string) bool {
	return slices.ContainsFunc(l.Of(step), func(c steps.Cell) bool {
		root, masked := l.Board.Cause(c)
		return masked && l.Board.Verdict(c).Status == steps.Skip && l.Board.Verdict(root).Status != steps.Skip
	})
}

// FirstCause is the first cell that fails or is unknown by itself, not because
// of another; none where nothing of the set-up exists yet.
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

// FirstOpen is the index of the step where one goes on: that of the first cause,
// else the first step that is not green; the last step where all are.
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

// Elsewhere is how many cells fail or are unknown by themselves in other steps.
func (l *Live) Elsewhere(step string) int {
	n := 0
	for _, t := range l.Board.Troubles() {
		if t.Root && t.Result.Status != steps.Warn && t.Cell.Step != step {
			n++
		}
	}
	return n
}

// Wrong are the cells of these statuses, in their order; of one status those
// first that hold up the most others.
func (l *Live) Wrong(statuses ...steps.Status) []steps.Cell {
	causes := l.Board.Causes()
	var out []steps.Cell
	for _, s := range statuses {
		from := len(out)
		for _, c := range l.Guide().Cells() {
			if l.Board.Verdict(c).Status == s {
				out = append(out, c)
			}
		}
		slices.SortStableFunc(out[from:], func(x, y steps.Cell) int { return causes[y] - causes[x] })
	}
	return out
}

// Due is a moment at which a verdict ends by itself, such as the end of a
// credential's life.
type Due struct {
	At   time.Time
	Cell steps.Cell
}

// Dues are those that are a day or more away, the first one first.
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

// Seen is when the oldest cell of a step was looked at; zero: one never was.
func (l *Live) Seen(step string) time.Time {
	var oldest time.Time
	for i, c := range l.Of(step) {
		if at := l.Look(c).Began; i == 0 || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// Follows says how fresh the cells of a step are: watched, some of them polled
// because they may not be watched, or still being looked at.
func (l *Live) Follows(step string) string {
	cells, polled := l.Of(step), 0
	if pending := l.Behind(cells, time.Time{}); pending > 0 {
		return Plural(pending, "check") + " to go"
	}
	for _, c := range cells {
		if _, p := l.Look(c).Trace.Seen(); p {
			polled++
		}
	}
	if polled > 0 {
		return "live, " + Plural(polled, "check") + " polled"
	}
	return "live"
}
