package lines

import (
	"slices"
	"strconv"
	"strings"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

type row struct {
	n     int // number of the check, from 1
	check *steps.Check
	cells []steps.Cell
}

func (w *walk) rows() []row {
	var out []row
	s := w.current()
	for i := range s.Checks {
		r := row{n: i + 1, check: &s.Checks[i]}
		for _, side := range steps.Sides {
			if r.check.On.Covers(side) {
				r.cells = append(r.cells, steps.Cell{Step: s.Name, Check: r.check.Name, Side: side})
			}
		}
		out = append(out, r)
	}
	return out
}

// rowOf returns the check whose number or name is args. If args is empty, it returns the only check for which fits
// returns true.
func (w *walk) rowOf(args string, fits func(row) bool) (row, bool) {
	rows := w.rows()
	var fitting []string
	var only row
	for _, r := range rows {
		if args == strconv.Itoa(r.n) || args == r.check.Name {
			return r, true
		}
		if fits(r) {
			fitting, only = append(fitting, strconv.Itoa(r.n)), r
		}
	}
	switch {
	case args != "":
		w.out.sentence("%s is not a check of this step; c lists them by number", quoted(args))
	case len(fitting) == 1:
		return only, true
	case len(fitting) == 0:
		w.out.say("Which check? c lists them by number.")
	default:
		w.out.sentence("Which check? %s", listed(fitting))
	}
	return row{}, false
}

// tell prints checks, one per line, and then the counts by status. Checks that need attention come last. If full is
// true, it prints each check with its number and finding. Otherwise it prints only the titles of passing checks and
// groups skipped checks by reason.
func (w *walk) tell(rows []row, full bool) {
	skipped := &skips{}
	order := []engine.State{
		engine.OK, engine.Off, engine.Skipped, engine.Later, engine.Checking, engine.InProgress, engine.ToDo,
		engine.Warning, engine.Unknown, engine.Failed,
	}
	if full {
		for _, r := range rows {
			w.tellRow(r, order, true, skipped)
		}
	} else {
		for _, s := range order {
			for _, r := range rows {
				w.tellRow(r, []engine.State{s}, false, skipped)
			}
			if s == engine.Later {
				w.tellSkips(skipped)
			}
		}
	}
	w.out.sentence("In this step: %s", tally(w.live.Board.Count(w.current().Name)))
}

// tellRow prints the cells of a check whose state is in which.
func (w *walk) tellRow(r row, which []engine.State, full bool, skipped *skips) {
	var said []steps.Cell
	var whole []string // the text for each cell in said
	for _, c := range r.cells {
		v := w.live.Board.Verdict(c)
		if state := w.live.Board.State(c); !slices.Contains(which, state) {
			continue
		}
		w.told[c] = v
		if v.Status == steps.Skip && !full {
			skipped.add(w.whySkipped(c, v))
			continue
		}
		said = append(said, c)
		text := word(w.live.Board.State(c)) + ": " + r.check.Title
		if v.Found != "" && (full || v.Status != steps.Pass) {
			text += ": " + model.OneLine(v.Says())
		}
		whole = append(whole, text)
	}
	number := ""
	if full {
		number = strconv.Itoa(r.n) + ", "
	}
	for i, who := range w.sayers(said, whole) {
		if who != "" {
			w.out.sentence("%s%s: %s", number, who, whole[i])
		}
	}
	if !full {
		w.tellFix(r, said, true)
	}
}

// sayers returns a prefix for each text. A prefix is the name of the side. If both sides have the same text, the first
// prefix is "both sides" and the second is "".
func (w *walk) sayers(cells []steps.Cell, texts []string) []string {
	out := make([]string, len(cells))
	if len(cells) == 2 && texts[0] == texts[1] {
		out[0] = "both sides"
		return out
	}
	for i, c := range cells {
		out[i] = w.role(c.Side)
	}
	return out
}

// tellFix prints the fix of a failing check. If why is true, it also prints why the check matters.
func (w *walk) tellFix(r row, cells []steps.Cell, why bool) {
	var acts, commands []string
	fails := false
	for _, c := range cells {
		v := w.live.Board.Verdict(c)
		if v.Status != steps.Fail && v.Status != steps.Warn && v.Status != steps.Unknown {
			continue
		}
		fails = fails || v.Status == steps.Fail
		fix := w.live.Fix(c)
		if fix.Action != nil {
			acts = addNew(acts, model.OneLine(fix.Title))
		}
		if len(fix.Run) > 0 {
			commands = addNew(commands, strings.Join(fix.Run, "\n"))
		}
	}
	if why && fails && r.check.Why != "" {
		w.out.sentence("Why: %s", r.check.Why)
	}
	if len(acts) > 0 {
		w.out.sentence("Fix: f %d runs the fix: %s", r.n, strings.Join(acts, "; "))
	}
	for _, text := range commands {
		if strings.Contains(text, "\n") {
			w.out.say("Fix:")
			w.out.raw(text)
		} else {
			w.out.say("Fix: %s", text)
		}
	}
}

func addNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
