package lines

import (
	"slices"

	"carrick/steps"
	"carrick/ui/model"
)

// skips counts skipped checks by reason, in the order in which the reasons first occurred.
type skips struct {
	list []skipped
}

type skipped struct {
	why   string
	until []string // sides on which the check in why must pass first; if nil, why is the complete reason
	n     int
}

func (s *skips) add(why, side string) {
	for i := range s.list {
		k := &s.list[i]
		if k.why == why && (side == "") == (k.until == nil) {
			if k.n++; side != "" && !slices.Contains(k.until, side) {
				k.until = append(k.until, side)
			}
			return
		}
	}
	k := skipped{why: why, n: 1}
	if side != "" {
		k.until = []string{side}
	}
	s.list = append(s.list, k)
}

// whySkipped returns the title and the side of the check that must pass before the skipped cell. If no check blocks the
// cell, it returns the cell's own reason and no side.
func (w *walk) whySkipped(c steps.Cell, v steps.Result) (why, side string) {
	root, masked := w.live.Board.Cause(c)
	if !masked {
		return model.OneLine(v.Says()), ""
	}
	check, step := w.guide().Check(root.Check)
	why = model.OneLine(check.Title)
	if step.Name != c.Step {
		why += ", of step " + step.Title
	}
	return why, w.role(root.Side)
}

func (w *walk) tellSkips(s *skips) {
	for _, k := range s.list {
		if k.until == nil {
			w.out.sentence("%s skipped: %s", steps.Plural(k.n, "check"), k.why)
			continue
		}
		w.out.sentence("Later: %s, blocked by a check on the %s: %s", steps.Plural(k.n, "check"), listed(k.until), k.why)
	}
}
