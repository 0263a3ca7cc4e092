package ui

import (
	"time"

	"carrick/steps"
)

// looked tells how many cells have been looked at, of how many.
func (l *live) looked() (done, all int) {
	for _, k := range l.looks {
		all++
		if !k.began.IsZero() {
			done++
		}
	}
	return done, all
}

// state is the status that a step as a whole has: its worst. A step of which some
// can't be told before another one holds is not done, whatever the rest says.
func (l *live) state(step string) steps.Status {
	n := l.board.Count(step)
	for _, s := range []steps.Status{steps.Fail, steps.Unknown, steps.Pending, steps.Waiting} {
		if n.Of(s) > 0 {
			return s
		}
	}
	if l.held(step) {
		return steps.Skip
	}
	for _, s := range []steps.Status{steps.Warn, steps.Pass} {
		if n.Of(s) > 0 {
			return s
		}
	}
	return steps.Skip
}

// held tells whether a cell of the step says nothing because of another cell that
// is not as it should be; one that is skipped for good holds nothing up.
func (l *live) held(step string) bool {
	for _, c := range l.session.Guide().Cells() {
		if c.Step != step || l.board.Verdict(c).Status != steps.Skip {
			continue
		}
		if root, masked := l.board.Cause(c); masked && l.board.Verdict(root).Status != steps.Skip {
			return true
		}
	}
	return false
}

// firstCause is the first cell that fails or is unknown by itself, not because of
// another; none where nothing of the set-up stands yet.
func (l *live) firstCause() (steps.Cell, bool) {
	if holds, _ := l.session.Standing(l.board); holds == 0 {
		return steps.Cell{}, false
	}
	for _, t := range l.board.Troubles() {
		if t.Root && t.Result.Status != steps.Warn {
			return t.Cell, true
		}
	}
	return steps.Cell{}, false
}

// firstOpen is the index of the step where one goes on: that of the first cause,
// else the first step that is not green; the last step where all are.
func (l *live) firstOpen() int {
	guide := l.session.Guide()
	if c, ok := l.firstCause(); ok {
		for i := range guide.Steps {
			if guide.Steps[i].Name == c.Step {
				return i
			}
		}
	}
	for i := range guide.Steps {
		if !l.board.Count(guide.Steps[i].Name).Green() {
			return i
		}
	}
	return len(guide.Steps) - 1
}

// seen is when the oldest cell of a step was looked at; zero: one never was.
func (l *live) seen(step string) time.Time {
	var oldest time.Time
	for _, c := range l.session.Guide().Cells() {
		if c.Step != step {
			continue
		}
		at := l.looks[c].began
		if at.IsZero() {
			return at
		}
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// follows says how fresh the cells of a step are: watched, some of them polled
// because they may not be watched, or still being looked at.
func (l *live) follows(step string) string {
	polled, pending := 0, 0
	for _, c := range l.session.Guide().Cells() {
		k := l.looks[c]
		switch {
		case c.Step != step:
		case k.began.IsZero():
			pending++
		default:
			if _, p := k.trace.Seen(); p {
				polled++
			}
		}
	}
	switch {
	case pending > 0:
		return plural(pending, "check") + " to go"
	case polled > 0:
		return "live, " + plural(polled, "check") + " polled"
	}
	return "live"
}

// pace is how often a step has to be drawn again by itself.
func (l *live) pace(step string) time.Duration {
	var p time.Duration
	for c, k := range l.looks {
		if c.Step != step {
			continue
		}
		if (k.probing && k.began.IsZero()) || k.asked {
			p = faster(p, spinning)
		}
		if r := l.board.Verdict(c); r.Status == steps.Waiting && !r.Since.IsZero() {
			p = faster(p, counting)
		}
	}
	return p
}
