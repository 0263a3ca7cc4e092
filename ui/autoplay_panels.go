package ui

import (
	"fmt"
	"strings"

	"carrick/steps"
)

// pagesOfDiff is the number of pages that autoplay shows before the last page of a diff.
const pagesOfDiff = 3

func (p *player) onPanel(top screen) move {
	switch s := top.(type) {
	case *confirm:
		return p.onConfirm(s)
	case *form:
		return p.onForm(s)
	case *mapPanel:
		return p.onMap(s)
	}
	s, ok := p.a.page.(*stepPage)
	if !ok {
		return move{id: "panel/away", kind: at1, key: "esc"}
	}
	name := s.step().Name
	if p.troubled(top) {
		return move{
			id: "stopped/" + name, kind: halt, text: "carrick stops here; the screen shows the reason. Nothing was changed.",
		}
	}
	switch {
	case p.told["diff/"+name] && !p.told["read/"+name]:
		return p.onDiff(s, top)
	}
	return move{id: "panel/away", kind: at1, key: "esc"}
}

// troubled reports whether an unrequested panel opened, such as an error.
func (p *player) troubled(top screen) bool {
	what, _, _ := strings.Cut(p.last, "/")
	switch what {
	case "apply", "fix", "undo":
		return true
	case "diff", "form":
		s := pagerOf(top)
		return s != nil && !strings.HasPrefix(s.title, "Changes")
	}
	return false
}

// onDiff scrolls through the changes of a step and then closes the panel.
func (p *player) onDiff(s *stepPage, top screen) move {
	name := s.step().Name
	text := "This is the plan."
	if plan, _ := p.a.live.Known(name); plan != nil {
		text = p.changeTitles(plan)
	}
	for page := range pagesOfDiff {
		if id := fmt.Sprintf("diff/%s/%d", name, page); !p.told[id] {
			if page > 0 {
				text = "Line by line …"
				if p.first("lines") {
					text = "Line by line, from the API servers' dry run; secrets are masked."
				}
			}
			if p.atEnd(top) {
				break
			}
			return move{id: id, text: text, key: "pgdown", hint: p.a.k.PageDown.as("scroll")}
		}
	}
	if id := "diff/" + name + "/last"; !p.atEnd(top) && !p.told[id] {
		return move{id: id, text: "The diff continues to the end.", key: "G", hint: p.a.k.Bottom.as("the end")}
	}
	if p.told["diff/"+name+"/0"] {
		text = "That is the whole diff. Nothing was changed yet."
	}
	return move{id: "read/" + name, text: text, key: "esc", hint: p.a.k.Esc.hint()}
}

func (p *player) atEnd(top screen) bool {
	if s := pagerOf(top); s != nil {
		return s.shown >= len(s.lines())-p.a.panelHeight()
	}
	return false
}

// pagerOf returns the pager of the top panel, or nil if it has none.
func pagerOf(top screen) *pager {
	switch s := top.(type) {
	case *pager:
		return s
	case *diffPanel:
		return s.pager
	}
	return nil
}

// onConfirm describes the changes and confirms them.
func (p *player) onConfirm(c *confirm) move {
	a := p.a
	s := a.stepPage()
	if s == nil {
		return move{id: "confirm/away", kind: at1, key: "esc"}
	}
	id := fmt.Sprintf("confirm/%s/%d/%p", s.step().Name, c.at, c)
	if cell, yes := p.broken(s); yes && !p.told["fault/over"] && len(a.unmet(c.plan, 80)) > 0 {
		return move{
			id:   "later/" + s.guide().ID(cell),
			text: "This fix requires earlier steps. The demo answers No, and goes through all steps from the start.", key: "n",
			hint: a.k.No.hint(),
		}
	}
	text := p.tally(c.plan)
	if p.first("confirm") {
		text += " Nothing else changes."
	}
	switch {
	case c.at > 0:
		text = "carrick asks a second time, because these changes overwrite fields that another tool set, or delete " +
			"objects first."
	case c.plan.Undo:
		text = p.tally(c.plan) + " The undo affects only what this link created."
	}
	return move{id: id, text: text, key: "y", hint: a.k.Yes.hint()}
}

// onForm types the answers in Walk.Answers and saves them.
func (p *player) onForm(f *form) move {
	name := f.step.Name
	p.told["answers/"+name] = true
	for i := range f.asked {
		p.told["asked/"+f.asked[i].Question.Key] = true
	}
	q := p.toAnswer(f.asked, f.drafts())
	if q == nil {
		for _, q := range f.asked {
			if d := f.drafts()[q.Question.Key]; q.Value == nil && !q.Question.Opt && (d == nil || strings.TrimSpace(*d) == "") {
				return move{
					id: "form/missing/" + q.Question.Key, kind: halt,
					text: fmt.Sprintf("Your answer is required: %s.", q.Question.Title),
				}
			}
		}
		return move{
			id: "form/save/" + name, text: "ctrl+s saves the answers to the link file.", key: "ctrl+s", hint: p.a.k.Store.hint(),
		}
	}
	want := p.w.Answers[q.Question.Key]
	if at := f.form.GetFocusedField().GetKey(); at != q.Question.Key {
		id := "form/from/" + at
		if p.last == id { // the form needs a moment to advance
			return move{
				id: "form/moves", kind: wait, text: q.Question.Title + " …",
				what: func() string { return "the field " + q.Question.Title },
			}
		}
		return move{id: id, kind: at1, key: "tab"}
	}
	text := fmt.Sprintf("%s: %s.", q.Question.Title, p.shown(q.Question))
	m := move{id: "form/type/" + q.Question.Key, text: text}
	switch {
	case q.Question.Kind == steps.YesNo && want == "true":
		m.key, m.hint = "y", p.a.k.Yes.hint()
	case q.Question.Kind == steps.YesNo:
		m.key, m.hint = "n", p.a.k.No.hint()
	case q.Question.Kind == steps.Pick:
		m.id, m.key, m.kind = "form/down", "down", at1
	case q.Question.Kind == steps.YAML:
		m.kind, m.text = halt, "Your answer is required: "+q.Question.Title+"."
	case *f.draft(*q) != "":
		m.id, m.key, m.kind = "form/clear", "ctrl+u", at1
	default:
		m.key = want
	}
	return m
}

// onSummary shows the summary and undoes everything if Walk.Undo is set. Autoplay then ends.
func (p *player) onSummary(s *summary) move {
	a := p.a
	if m, busy := p.taking(s); busy {
		return m
	}
	done, all := a.live.Looked()
	if (s.made == nil && s.err == nil) || done < all {
		return move{id: "summary/look", kind: wait, text: "The summary: running every check once more …", what: p.unseen}
	}
	round := fmt.Sprint(p.told["undo"])
	if id := "summary/" + round; !p.told[id] {
		return move{id: id, text: p.summaryText(s)}
	}
	if id := "summary/end/" + round; !p.told[id] && len(s.lines(a.w-2)) > a.h-5 {
		return move{
			id:   id,
			text: "Below: the objects that this link created, expiry dates, and commands to continue without the screen.",
			key:  "pgdown", hint: a.k.PageDown.as("scroll"),
		}
	}
	if id := "summary/top/" + round; !p.told[id] && s.scroll.shown > 0 {
		return move{
			id: id, text: "The commands carrick check, diff, apply and undo do the same without a screen.", key: "g",
			hint: a.k.Top.hint(),
		}
	}
	if m, ok := p.onSummaryBreak(s); ok {
		return m
	}
	switch {
	case p.w.Undo && !p.told["undo"]:
		return move{
			id: "undo", text: "carrick can undo everything: it deletes the objects that this link created, in a safe order.",
			key: "u", hint: a.k.Undo.as("undo all"),
		}
	case a.live.Board.Count("").Green() || p.told["undo"]:
		return move{id: "end", kind: end, text: "That was the demo. Now every key works; q quits."}
	}
	return move{
		id: "end", kind: end,
		text: "The demo ends here, and some checks still fail: the summary lists them. Now every key works; q quits.",
	}
}

// taking returns the step of the script while an undo from the summary is planned or running, or has just ended.
// Otherwise it returns false.
func (p *player) taking(s *summary) (move, bool) {
	run := p.a.run
	switch {
	case run.busy():
		return p.running(run), true
	case s.from.asked != nothing:
		return move{
			id: "plan/undo", kind: wait, text: "Planning the undo …",
			what: func() string { return "the plan of the undo" },
		}, true
	case run == nil || !run.Plan.Undo || p.told["undone"]:
		return move{}, false
	case run.err != nil:
		return move{id: "undone", kind: halt, text: "The undo failed: " + run.err.Error()}, true
	}
	return move{
		id: "undone",
		text: fmt.Sprintf(
			"Undone: %s. The checks confirm it: rows that were green fail again.", steps.Plural(run.Changed, "change"),
		),
	}, true
}
