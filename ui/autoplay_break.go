package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// elsewhereAfter is how long the script waits for a failed check in the step that created the deleted object, before it
// accepts a failed check in another step.
const elsewhereAfter = time.Minute

// unnoticedAfter is how long the script waits for a failed check at all.
const unnoticedAfter = 3 * time.Minute

// deletion is an object that the script deletes at the end, and what follows.
type deletion struct {
	what  string // kind and name, as in plans
	step  string // the step that created it
	line  string // the kubectl command
	began time.Time
	took  time.Duration // until a check failed
	err   error
	cell  steps.Cell // the first failed check of that step, or else the first cause
}

// deletedMsg reports that kubectl has deleted the object.
type deletedMsg struct{ err error }

// deletionOf returns the deletion of an object that the undo plan contains. It returns nil if there is no suitable
// object.
func (p *player) deletionOf(made *engine.Plan) *deletion {
	for _, kind := range p.w.Expendable {
		for _, act := range made.Actions {
			for _, it := range act.Change.Items {
				is, name, _ := strings.Cut(it.What, " ")
				if is != kind || it.Verb != steps.Delete {
					continue
				}
				line := "kubectl"
				if context := p.a.live.Session.Link().Side(act.Side).Context; context != "" {
					line += " --context " + steps.Quoted(context)
				}
				if space, bare, namespaced := strings.Cut(name, "/"); namespaced {
					line, name = line+" -n "+steps.Quoted(space), bare
				}
				line += " delete " + strings.ToLower(kind) + " " + steps.Quoted(name)
				return &deletion{what: it.What, step: act.Step, line: line}
			}
		}
	}
	return nil
}

// onSummaryBreak returns the step of the script that opens the map, on which the script then deletes an object. It
// returns false if the script deletes nothing or has already shown it.
func (p *player) onSummaryBreak(s *summary) (move, bool) {
	a := p.a
	if p.w.Shell == nil || p.w.Fault != "" || p.told["undo"] || p.told["break/map"] {
		return move{}, false
	}
	if p.deleted == nil && s.made != nil && a.live.Board.Count("").Green() {
		p.deleted = p.deletionOf(s.made)
	}
	if p.deleted == nil {
		return move{}, false
	}
	text := "m shows both sides, and what each step connects. Everything is green."
	return move{id: "break/map", text: text, key: "m", hint: a.k.Map.hint()}, true
}

// onMap deletes the object, waits until the map shows it, and opens the row.
func (p *player) onMap(m *mapPanel) move {
	a, d := p.a, p.deleted
	if d == nil || p.told["break/open"] || p.told["break/failed"] || p.told["break/unnoticed"] {
		return move{id: "map/away", kind: at1, key: "esc"}
	}
	if !p.told["break/delete"] {
		text := "Now the demo breaks something. It runs: " + d.line
		return move{id: "break/delete", text: text, do: p.delete}
	}
	if d.err != nil {
		return move{id: "break/failed", text: "Nothing was deleted: " + oneLine(d.err.Error())}
	}
	if d.took == 0 {
		cell, broken := p.brokenBy(d)
		if !broken && a.now().Sub(d.began) > unnoticedAfter {
			text := "No check has failed because of that. The demo goes on."
			return move{id: "break/unnoticed", text: text, key: "esc", hint: a.k.Esc.hint()}
		}
		if !broken {
			return move{
				id: "break/wait", kind: wait, text: "carrick watches both sides …",
				what: func() string { return "a check to fail because of the deletion" },
			}
		}
		d.took = max(a.now().Sub(d.began), 10*time.Millisecond)
		p.turnsTo(d, cell)
	}
	if !p.told["break/red"] {
		return move{id: "break/red", text: fmt.Sprintf(
			"The map turned red %s after kubectl started. %s.", d.took.Round(10*time.Millisecond),
			strings.TrimSuffix(oneLine(a.live.Board.Verdict(d.cell).Found), "."),
		)}
	}
	rows := a.live.Map()
	at := slices.IndexFunc(rows, func(r model.MapRow) bool { return a.live.Guide().Steps[r.Step].Name == d.cell.Step })
	switch {
	case at > m.row.at:
		return move{id: "break/down", kind: at1, key: "down"}
	case at >= 0 && at < m.row.at:
		return move{id: "break/up", kind: at1, key: "up"}
	}
	return move{id: "break/open", text: "enter opens the row.", key: "enter", hint: a.k.Open.as("open the row")}
}

// brokenBy returns the first failed cell in the step that created the deleted object. If none fails for a while, it
// returns the first cause in any step.
func (p *player) brokenBy(d *deletion) (steps.Cell, bool) {
	live := p.a.live
	for _, c := range live.Guide().Cells() {
		if c.Step == d.step && live.Board.State(c) == engine.Failed {
			return c, true
		}
	}
	if p.a.now().Sub(d.began) < elsewhereAfter {
		return steps.Cell{}, false
	}
	return live.FirstCause()
}

// turnsTo makes the script repair a cell, regardless of what it has said and done about the cell before.
func (p *player) turnsTo(d *deletion, c steps.Cell) {
	if d.cell == c {
		return
	}
	d.cell = c
	for _, told := range []string{"cause/", "fix/", "ran/", "left/", "later/"} {
		delete(p.told, told+p.a.live.Guide().ID(c))
	}
	delete(p.ran, c)
}

// delete runs kubectl.
func (p *player) delete() tea.Cmd {
	d, run, ctx := p.deleted, p.w.Shell, p.a.ctx
	d.began = p.a.now()
	return func() tea.Msg { return deletedMsg{run(ctx, d.line)} }
}

// heal returns the step of the script that repairs what the script deleted, and then returns to the summary. If nothing
// was deleted, it returns false.
func (p *player) heal(s *stepPage) (move, bool) {
	a, d := p.a, p.deleted
	if d == nil || d.took == 0 {
		return move{}, false
	}
	if p.told["break/healed"] {
		return move{id: fmt.Sprint("break/back/", s.at), kind: at1, key: "right"}, true
	}
	if root, masked := a.live.Board.Cause(d.cell); masked { // the first failed check was a consequence
		p.turnsTo(d, root)
	}
	if a.live.Board.State(d.cell) == engine.Warning { // a drift check only warns beside the check that fails
		if cell, broken := p.brokenBy(d); broken {
			p.turnsTo(d, cell)
		}
	}
	id := s.guide().ID(d.cell)
	if p.told["left/"+id] {
		return move{id: fmt.Sprint("break/back/", s.at), kind: at1, key: "right"}, true
	}
	state, pressed := a.live.Board.State(d.cell), p.told["fix/"+id]
	if state == engine.InProgress || state == engine.Checking || pressed && a.now().Sub(p.still) < sure {
		return move{id: "break/checking", kind: wait, text: "Checking …", what: p.unseen}, true
	}
	if a.live.Board.Verdict(d.cell).Status.Holds() {
		text := fmt.Sprintf("%s is back, and the check passes again.", upperFirst(oneLine(d.what)))
		return move{id: "break/healed", text: text}, true
	}
	if s.step().Name != d.cell.Step {
		return p.toStep(s, d.cell.Step, "The demo goes to the step with the failed check."), true
	}
	return p.mend(s, d.cell)
}
