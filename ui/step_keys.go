package ui

import (
	"slices"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

func (p *stepPage) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case answersMsg:
		return p.answered(msg)
	case plannedMsg:
		return p.planned(msg)
	case savedMsg:
		return p.saved(msg)
	case tea.KeyMsg:
		if p.typing() {
			return p.typed(msg)
		}
		return p.pressed(msg)
	}
	if p.typing() {
		var cmd tea.Cmd
		p.filter, cmd = p.filter.Update(msg)
		return cmd
	}
	return nil
}

func (p *stepPage) typed(k tea.KeyMsg) tea.Cmd {
	switch {
	case key.Matches(k, p.a.k.Esc.Binding):
		p.filter.Reset()
		p.filter.Blur()
		return nil
	case key.Matches(k, p.a.k.Open.Binding):
		p.filter.Blur()
		return nil
	case k.Type == tea.KeyUp || k.Type == tea.KeyDown:
		p.moves(k, 1)
		return nil
	}
	var cmd tea.Cmd
	p.filter, cmd = p.filter.Update(k)
	return cmd
}

func (p *stepPage) pressed(k tea.KeyMsg) tea.Cmd {
	keys := p.a.k
	if p.early(k) {
		return nil
	}
	if p.moves(k, p.layout().rows) {
		p.place().moved = true
		p.a.run.dismiss()
		return nil
	}
	switch {
	case key.Matches(k, keys.Tab.Binding):
		p.otherSide()
	case key.Matches(k, keys.Open.Binding):
		return p.openDetail()
	case key.Matches(k, keys.Esc.Binding):
		p.escape()
	case key.Matches(k, keys.Back.Binding):
		return p.enter(p.at - 1)
	case key.Matches(k, keys.Next.Binding):
		return p.enter(p.at + 1)
	case key.Matches(k, keys.Jump.Binding, keys.Digit.Binding):
		return p.jump(k)
	case key.Matches(k, keys.Filter.Binding):
		return p.filter.Focus()
	case key.Matches(k, keys.Answers.Binding):
		return p.openForm()
	case key.Matches(k, keys.Apply.Binding):
		return p.ask(toApply, p.step().Title, engine.Scope{Steps: []string{p.step().Name}})
	case key.Matches(k, keys.Everything.Binding):
		return p.applyAll()
	case key.Matches(k, keys.Diff.Binding):
		return p.ask(toShow, p.step().Title, engine.Scope{Steps: []string{p.step().Name}})
	case key.Matches(k, keys.Undo.Binding):
		return p.ask(toUndo, p.step().Title, engine.Scope{Steps: []string{p.step().Name}})
	case key.Matches(k, keys.Fix.Binding):
		return p.fix()
	}
	return p.look(k)
}

// early reports whether a key confirms changes that are not shown yet. If so, it shows a notice, and the key must have
// no other effect.
func (p *stepPage) early(k tea.KeyMsg) bool {
	if p.asked == nothing || !key.Matches(k, p.a.k.Yes.Binding) {
		return false
	}
	p.a.notice = "not yet: " + p.a.k.Yes.Help().Key + " once the changes are shown"
	return true
}

// look handles the keys that change neither clusters nor answers.
func (p *stepPage) look(k tea.KeyMsg) tea.Cmd {
	keys := p.a.k
	check, cell, ok := p.cell()
	switch {
	case key.Matches(k, keys.Copy.Binding) && p.a.run.asks() && p.a.run.Asked.Address() != "":
		return p.a.copy(p.a.run.Asked.Address())
	case key.Matches(k, keys.Copy.Binding) && p.a.run.failed():
		return p.a.copy(p.a.run.command(p.a))
	case key.Matches(k, keys.All.Binding):
		return p.a.again()
	case key.Matches(k, keys.Off.Binding):
		p.a.showsOff = !p.a.showsOff
	case key.Matches(k, keys.Save.Binding):
		return p.a.save()
	case !ok:
	case key.Matches(k, keys.Again.Binding):
		return p.a.again(cell)
	case key.Matches(k, keys.Copy.Binding):
		return p.a.copy(p.a.live.Copied(cell))
	case key.Matches(k, keys.Page.Binding):
		return p.a.lay(p.a.pagePanel("References", p.a.live.Pages(check)))
	}
	return nil
}

// otherSide selects the cell on the other side. If only one side is shown at a time and the row does not exist on the
// other side, it selects a neighboring row.
func (p *stepPage) otherSide() {
	pl := p.place()
	p.a.run.dismiss()
	pl.moved = true
	pl.side = p.side().Peer()
	if !p.a.narrow() || p.side() == pl.side {
		return
	}
	step := p.step().Checks
	at := max(0, slices.IndexFunc(step, func(c steps.Check) bool { return c.Name == pl.check }))
	for _, list := range [][]steps.Check{step[at:], step} {
		for i := range list {
			if list[i].On.Covers(pl.side) {
				pl.check = list[i].Name
				return
			}
		}
	}
}

// escape goes one level back. It cancels a requested plan, hides the result of a run, or clears the filter.
func (p *stepPage) escape() {
	switch {
	case p.asked != nothing:
		p.asked = nothing
	case p.a.run.dismiss():
	default:
		p.filter.Reset()
	}
}

// fix runs only the action that fixes the selected check, and what must run again because of it.
func (p *stepPage) fix() tea.Cmd {
	check, cell, ok := p.cell()
	if !ok {
		return nil
	}
	v := p.a.live.Board.Verdict(cell)
	mend, _ := p.guide().Offer(check, cell.Side, v)
	action, _ := p.a.live.Offer(cell)
	wrong := v.Status == steps.Fail || v.Status == steps.Warn
	switch {
	case v.Status == steps.Pass:
		p.a.notice = "this check passes: there is nothing to fix"
	case action != nil, mend != nil && wrong: // the forecast can be outdated, and an empty plan says why it is empty
		return p.ask(toFix, oneLine(mend.Title), engine.Scope{Actions: []string{mend.Name}, Follow: true})
	case v.Status == steps.Fail && p.a.live.Changes(p.step().Name) > 0: // the step can make the check pass
		return p.ask(toApply, p.step().Title, engine.Scope{Steps: []string{p.step().Name}})
	case mend == nil:
		p.a.notice = "carrick has no action for this check; the fix says what to do"
	default:
		p.a.notice = "there is nothing to fix yet: enter shows why"
	}
	return nil
}

// answered stores the answers of a step. If the user requested the form, it opens the form. If an answer is missing, it
// opens the form once without a request.
func (p *stepPage) answered(m answersMsg) tea.Cmd {
	pl := p.placeOf(m.step)
	pl.answers = m.list
	if m.step != p.step().Name || len(p.a.panels) > 0 || p.typing() {
		return nil
	}
	if pl.wanted {
		pl.wanted, p.a.notice = false, ""
		return p.openForm()
	}
	if pl.formed || len(pl.missing()) == 0 {
		return nil
	}
	return p.openForm()
}
