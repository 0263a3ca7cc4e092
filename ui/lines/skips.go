package lines

import (
	"carrick/steps"
)

// skips counts why checks were skipped, in the order in which that came up.
type skips struct {
	list []skipped
}

type skipped struct {
	why   string
	until []string // the sides on which something must hold first; nil: why says it all
	n     int
}

func (s *skips) add(why, side string) {
	for i := range s.list {
		k := &s.list[i]
		if k.why == why && (side == "") == (k.until == nil) {
			if k.n++; side != "" && !contains(k.until, side) {
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

// whySkipped is why a cell was skipped: what must hold first, and on which
// side, else its own reason.
func (w *walk) whySkipped(c steps.Cell, v steps.Result) (why, side string) {
	root, masked := w.board.cause(c)
	if !masked {
		return oneLine(v.Found), ""
	}
	check, step := w.guide().Check(root.Check)
	why = oneLine(check.Title)
	if step.Name != c.Step {
		why += ", of step " + step.Title
	}
	return why, w.role(root.Side)
}

func (w *walk) tellSkips(s *skips) {
	for _, k := range s.list {
		if k.until == nil {
			w.out.sentence("%s skipped: %s", plural(k.n, "check"), k.why)
			continue
		}
		w.out.sentence("%s skipped until this holds on the %s: %s", plural(k.n, "check"), listed(k.until), k.why)
	}
}
