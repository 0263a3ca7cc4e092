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
