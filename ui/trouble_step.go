package ui

import (
	"fmt"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
)

func causes(n int) string {
	if n == 1 {
		return "causes 1 other"
	}
	return fmt.Sprintf("causes %d others", n)
}

func fixOrFound(r steps.Result) string {
	if r.Fix != "" {
		return r.Fix
	}
	return r.Found
}

func (p *stepPage) goTo(c steps.Cell) tea.Cmd {
	_, step := p.guide().Check(c.Check)
	at := slices.IndexFunc(p.guide().Steps, func(s steps.Step) bool { return s.Name == step.Name })
	cmd := p.enter(at)
	p.selectCell(c)
	return cmd
}

func (p *stepPage) selectCell(c steps.Cell) {
	pl := p.place()
	pl.side, pl.moved, pl.check = c.Side, true, c.Check
}

func (p *stepPage) elsewhere() int {
	n := 0
	for _, t := range p.a.live.board.Troubles() {
		if t.Root && t.Result.Status != steps.Warn && t.Cell.Step != p.step().Name {
			n++
		}
	}
	return n
}

func (p *stepPage) behind(c steps.Cell, r steps.Result) []steps.Cell {
	if r.Status == steps.Skip || r.Status.Holds() {
		return nil
	}
	return p.a.live.board.Behind()[c]
}

func (p *stepPage) behindLines(cells []steps.Cell, w int) []string {
	var out []string
	for _, c := range cells {
		check, step := p.guide().Check(c.Check)
		text := p.guide().Sides[c.Side].Name + ": " + oneLine(check.Title)
		if step.Name != p.step().Name {
			text += " (step " + step.Title + ")"
		}
		out = append(out, wrap(text, w)...)
	}
	return out
}
