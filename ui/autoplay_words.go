package ui

import (
	"fmt"
	"strings"
	"unicode"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

func (p *player) side(side steps.Side) string { return sideWord(p.a.live.Guide(), side) }

// sideWord returns the name of a side for use in a sentence, such as "provider". If the guide does not name the side,
// the name includes the kind, as in "remote cluster".
func sideWord(g *steps.Guide, side steps.Side) string {
	role := g.Sides[side]
	if role.Name == string(side) {
		return role.Name + " " + string(role.Kind)
	}
	return role.Name
}

// intro explains the purpose of a step. For the first step it also explains the screen.
func (p *player) intro(s *stepPage) string {
	step, guide := s.step(), s.guide()
	text := fmt.Sprintf("Step %d of %d, %s. %s", s.at+1, len(guide.Steps), step.Title, oneLine(step.Why))
	if s.at == 0 {
		text += fmt.Sprintf(
			" Each row is a check. The columns are the %s and the %s; carrick watches both, so a row changes when its "+
				"cluster does.",
			p.side(steps.Local), p.side(steps.Remote),
		)
	}
	return text
}

// first reports whether the guide step on screen is the one that gives an explanation. Each explanation is given by the
// first guide step that asks for it.
func (p *player) first(lesson string) bool {
	by := p.lessons[lesson]
	at := ""
	if s, ok := p.a.page.(*stepPage); ok {
		at = s.step().Name
	}
	if by == "" {
		p.lessons[lesson] = at
	}
	return by == "" || by == at
}

// standing describes how many of a step's checks pass.
func (p *player) standing(s *stepPage) string {
	n := p.a.live.Board.Count(s.step().Name)
	all := len(p.a.live.Of(s.step().Name))
	held := n.Of(engine.OK) + n.Of(engine.Warning)
	if held == 0 {
		return "No check passes yet."
	}
	if held == all {
		return fmt.Sprintf("All %s already pass.", steps.Plural(all, "check"))
	}
	return fmt.Sprintf("%d of %s pass now.", held, steps.Plural(all, "check"))
}

// does maps each verb to the third person that captions use.
var does = map[steps.Verb]string{
	steps.Create: "creates", steps.Update: "changes", steps.Replace: "deletes and recreates", steps.Release: "releases",
	steps.Delete: "deletes", steps.Run: "runs",
}

func (p *player) changeTitles(plan *engine.Plan) string {
	var sides []string
	for _, side := range steps.Sides {
		var titles []string
		for _, act := range plan.Actions {
			if act.Side == side && (act.Pending != "" || len(model.ChangingItems(act.Change.Items)) > 0) {
				titles = append(titles, lowerFirst(oneLine(act.Title)))
			}
		}
		if len(titles) > 0 {
			sides = append(sides, fmt.Sprintf("On the %s: %s.", p.side(side), strings.Join(titles, "; ")))
		}
	}
	return strings.Join(sides, " ")
}

// tally describes how much a plan changes, by side.
func (p *player) tally(plan *engine.Plan) string {
	var sides []string
	later := 0
	for _, side := range steps.Sides {
		n := plan.Tally(side)
		var parts []string
		for _, v := range []steps.Verb{steps.Create, steps.Update, steps.Replace, steps.Release, steps.Delete, steps.Run} {
			if n[v] > 0 {
				parts = append(parts, fmt.Sprintf("%s %s", does[v], steps.Plural(n[v], "resource")))
			}
		}
		if len(parts) > 0 {
			sides = append(sides, fmt.Sprintf("%s on the %s", strings.Join(parts, ", "), p.side(side)))
		}
	}
	for _, act := range plan.Actions {
		if act.Pending != "" {
			later++
		}
	}
	switch {
	case len(sides) == 0 && later == 0:
		return "Yes changes nothing."
	case len(sides) == 0:
		return fmt.Sprintf("Yes runs %s as soon as their requirements are met.", steps.Plural(later, "action"))
	case later > 0:
		return fmt.Sprintf(
			"Yes %s. After that, carrick runs %s.", strings.Join(sides, " and "), steps.Plural(later, "more action"),
		)
	}
	return "Yes " + strings.Join(sides, " and ") + "."
}

// running returns the step of the script while a run is in progress.
func (p *player) running(r *run) move {
	m := move{
		id: p.runID("busy"), kind: wait, text: upperFirst(r.deed.doing) + " …", what: func() string { return p.awaited(r) },
	}
	if r.asks() && r.Asked.Person {
		m.id = p.runID("asks")
		m.text = strings.TrimSpace("carrick waits for you to follow the instructions above. " + p.w.Helped)
		m.what = func() string { return "you to follow the instructions above" }
	}
	return m
}

// awaited returns what a run waits for.
func (p *player) awaited(r *run) string {
	if c, waits := p.a.live.Awaits(r.Run); waits && r.Says == "" {
		check, step := p.a.live.Guide().Check(c.Check)
		return fmt.Sprintf("a check on the %s side: %s (step %s)", p.side(c.Side), check.Title, step.Title)
	}
	return r.doing(p.a)
}

// waited names the first check of the step that is waiting or pending.
func (p *player) waited(s *stepPage) string {
	for _, want := range []steps.Status{steps.Waiting, steps.Pending} {
		for _, c := range s.guide().Cells() {
			if v := p.a.live.Board.Verdict(c); c.Step == s.step().Name && v.Status == want {
				return fmt.Sprintf("%s: %s: %s", p.side(c.Side), checkOf(s, c).Title, v.Found)
			}
		}
	}
	return "the checks of this step"
}

// unseen names the first check that has no verdict yet.
func (p *player) unseen() string {
	if p.a.live == nil {
		return "the session"
	}
	guide := p.a.live.Guide()
	for _, c := range guide.Cells() {
		if p.a.live.Look(c).Began.IsZero() {
			check, _ := guide.Check(c.Check)
			return fmt.Sprintf("the first result of this check on the %s: %s", p.side(c.Side), check.Title)
		}
	}
	return "the checks to run"
}

// cause returns the finding of a cell and the reason why it matters.
func (p *player) cause(s *stepPage, c steps.Cell) string {
	v, check := p.a.live.Board.Verdict(c), checkOf(s, c)
	how := "fails"
	if v.Status == steps.Unknown {
		how = "is unknown"
	}
	text := fmt.Sprintf(
		"On the %s this check %s: %s. Finding: %s", p.side(c.Side), how, oneLine(check.Title), sentence(v.Found),
	)
	if check.Why != "" {
		text += " Why it matters: " + sentence(check.Why)
	}
	return text
}

// leftOver returns what a user must do about a cell that no key fixes.
func (p *player) leftOver(s *stepPage, c steps.Cell) string {
	switch fix := oneLine(p.a.live.Board.Verdict(c).Fix); {
	case p.told["fix/"+s.guide().ID(c)]:
		return "f did not fix this check. It has to be fixed manually. The demo goes on."
	case fix != "":
		return "carrick has no action for this check. Under Fix it shows what to do: " + sentence(fix) + " The demo goes on."
	}
	return "carrick has no action for this check. It has to be fixed manually. The demo goes on."
}

// verdictText describes whether a step passes, and what comes next.
func (p *player) verdictText(s *stepPage) string {
	a, step := p.a, s.step()
	n := a.live.Board.Count(step.Name)
	var text string
	switch a.live.State(step.Name) {
	case engine.OK, engine.Warning:
		text = fmt.Sprintf("Step %d is green: %s.", s.at+1, strings.ReplaceAll(n.String(), " · ", ", "))
	case engine.Later:
		text = "These rows are blocked by an earlier step. Each row names that step."
	case engine.Off:
		text = "The answers make these checks not applicable."
	case engine.Skipped:
		text = fmt.Sprintf("%s skipped. Each row shows the reason.", steps.Plural(n.Of(engine.Skipped), "check"))
	default:
		text = fmt.Sprintf(
			"The result of this step: %s. You can always go to the next step.", strings.ReplaceAll(n.String(), " · ", ", "),
		)
	}
	if a.live.State(step.Name) != engine.Skipped && n.Of(engine.Skipped) > 0 && p.first("skip") {
		text += " Skipped rows show the reason."
	}
	for _, c := range s.guide().Cells() {
		if v := a.live.Board.Verdict(c); c.Step == step.Name && v.Status == steps.Warn {
			text += fmt.Sprintf(" A warning, on the %s: %s", p.side(c.Side), sentence(v.Found))
			break
		}
	}
	return text
}

func (p *player) summaryText(s *summary) string {
	if p.told["undo"] {
		return "The summary after the undo: what this link created is gone, and all checks ran again."
	}
	n := p.a.live.Board.Count("")
	text := "Not all checks pass: " + strings.ReplaceAll(n.String(), " · ", ", ") + "."
	if n.Green() {
		text = "All checks pass: " + strings.ReplaceAll(n.String(), " · ", ", ") + "."
	}
	if s.made == nil {
		return text
	}
	made := 0
	for v, many := range s.made.Tally("") {
		if v.Changes() {
			made += many
		}
	}
	return text + fmt.Sprintf(" This link created or changed %s, and has labelled each.", steps.Plural(made, "resource"))
}

func (p *player) shown(q *steps.Question) string {
	switch want := p.w.Answers[q.Key]; {
	case q.Secret:
		return "hidden"
	case q.Kind == steps.YesNo && want == "true":
		return "yes"
	case q.Kind == steps.YesNo:
		return "no"
	default:
		return want
	}
}

// sentence adds a period if s has no punctuation at its end.
func sentence(s string) string {
	s = oneLine(s)
	if s == "" || strings.ContainsRune(".?!", rune(s[len(s)-1])) {
		return s
	}
	return s + "."
}

func upperFirst(s string) string {
	r := []rune(s)
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}

// lowerFirst lowers the first letter of a heading for use in a sentence, except in an acronym.
func lowerFirst(s string) string {
	r := []rune(s)
	if len(r) > 1 && unicode.IsLower(r[1]) {
		r[0] = unicode.ToLower(r[0])
	}
	return string(r)
}
