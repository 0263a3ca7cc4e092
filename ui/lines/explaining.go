package lines

import (
	"carrick/steps"
)

// tellChanged prints the checks of this step that have changed since they were last printed.
func (w *walk) tellChanged() {
	var rows []row
	for _, r := range w.rows() {
		var cells []steps.Cell
		for _, c := range r.cells {
			if w.differs(c) {
				cells = append(cells, c)
			}
		}
		if len(cells) > 0 {
			rows = append(rows, row{r.n, r.check, cells})
		}
	}
	if len(rows) == 0 {
		w.out.sentence("No check of this step has changed: %s", tally(w.live.Board.Count(w.current().Name)))
		return
	}
	w.tell(rows, false)
}

// differs reports whether a cell differs from what was last printed. For passing and skipped cells it ignores the
// finding.
func (w *walk) differs(c steps.Cell) bool {
	now, was := w.live.Board.Verdict(c), w.told[c]
	if now.Status != was.Status {
		return true
	}
	return now.Found != was.Found && now.Status != steps.Pass && now.Status != steps.Skip
}

func (w *walk) explained(r row) {
	c := r.check
	w.out.sentence("Check %d, %s: %s", r.n, c.Name, c.Title)
	w.out.sentence("Why: %s", c.Why)
	for _, cell := range r.cells {
		v := w.live.Board.Verdict(cell)
		w.out.sentence("%s: %s: %s", w.role(cell.Side), word(w.live.Board.State(cell)), v.Says())
	}
	if c.From != "" {
		w.out.sentence("Checked from %s", c.From)
	}
	if c.NotChecked != "" {
		w.out.sentence("Not checked by carrick: %s", c.NotChecked)
	}
	for _, cell := range r.cells {
		for _, need := range w.guide().Needs(cell) {
			check, _ := w.guide().Check(need.Check)
			w.out.sentence(
				"On the %s this check requires: %s: %s, which is %s", w.role(cell.Side), w.role(need.Side), check.Title,
				word(w.live.Board.State(need)),
			)
		}
	}
	if c.Timeout > 0 {
		w.out.sentence("This check waits at most %s", span(c.Timeout))
	}
	w.tellFix(r, r.cells, false)
	see := c.References
	if len(see) == 0 {
		see = []string{w.guide().Page}
	}
	for _, s := range see {
		w.out.say("References: %s", s)
	}
}
