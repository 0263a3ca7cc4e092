package ui

import (
	"fmt"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

func (p *sides) view() []string {
	lines := p.head()
	if !p.typing() {
		lines = append(lines, p.rows(p.room())...)
	} else if p.file != unfiled {
		lines = append(lines, p.fileLines()...)
	} else if p.naming() {
		lines = append(lines, p.a.noteLines(p.a.w-4)...)
	}
	said := p.saidLines()
	lines = append(fill(lines, p.a.h-1-len(said)), said...)
	return append(fill(lines, p.a.h-1), p.foot())
}

// head returns the lines above the list of contexts. They show both sides and the name. On a low screen they show only
// the current choice.
func (p *sides) head() []string {
	a := p.a
	out := []string{a.headline(p.guide.Title, "new link")}
	if a.h >= middleFrom {
		out = append(out, a.rule(), "")
	}
	for i, side := range steps.Sides {
		if a.h >= middleFrom || i == p.stage {
			out = append(out, p.chosen(i, side))
		}
	}
	if a.h >= middleFrom || p.naming() {
		out = append(out, p.nameLine())
	}
	if a.h >= middleFrom {
		out = append(out, "")
	}
	return out
}

// room returns the number of lines for the contexts and the head of their table.
func (p *sides) room() int { return max(1, p.a.h-1-len(p.head())-len(p.saidLines())) }

func (p *sides) rowsShown() int {
	if h := p.room(); h >= headFrom {
		return h - 1
	}
	return p.room()
}

// headFrom is the minimum number of lines for a table with a head.
const headFrom = 4

// chosen returns the line of one side. It contains the choice for that side, or a prompt.
func (p *sides) chosen(stage int, side steps.Side) string {
	a, spec := p.a, p.spec[side]
	name := pad(p.guide.Sides[side].Name, p.labels())
	switch {
	case p.stage == stage && p.file != unfiled:
		return p.fileLine(name)
	case spec.Host != nil:
		return " " + a.t.good.Render("✓") + " " + name + "  " + oneLine(spec.Host.Root)
	case spec.Facts != "":
		return " " + a.t.good.Render("✓") + " " + name + "  " + oneLine(spec.Facts) + "  " +
			a.t.faint.Render("a facts file")
	case spec.Context != "":
		says := p.met[spec.Context].says(a)
		room := max(a.w/3, a.w-width(name)-width(says)-8)
		return " " + a.t.good.Render("✓") + " " + name + "  " + clipName(oneLine(spec.Context), room) + "  " + says
	case p.stage == stage && p.onHost():
		return " " + a.t.accent.Render("▸") + " " + a.t.title.Render(name) + "  " + p.input.View() + "  " +
			a.t.faint.Render("this machine; another directory represents one")
	case p.stage == stage:
		return " " + a.t.accent.Render("▸") + " " + a.t.title.Render(name) + "  " + a.t.faint.Render("pick a context")
	case p.stage > stage:
		return " " + a.t.faint.Render("- "+name+"  left out")
	}
	return "   " + a.t.faint.Render(name)
}

func (p *sides) nameLine() string {
	a := p.a
	label := pad("name", p.labels())
	if !p.naming() {
		return "   " + a.t.faint.Render(label)
	}
	p.input.Width = max(1, min(linkfile.MaxName, a.w-p.labels()-8))
	return " " + a.t.accent.Render("▸") + " " + a.t.title.Render(label) + "  " + p.input.View()
}

func (p *sides) labels() int {
	w := width("name")
	for _, side := range steps.Sides {
		w = max(w, width(p.guide.Sides[side].Name))
	}
	return w
}

func (p *sides) rows(h int) []string {
	a := p.a
	switch {
	case p.err != nil:
		return hang(" "+a.t.bad.Render("✗")+" ", wrap(oneLine(p.err.Error()), max(1, a.w-4)))
	case !p.read:
		return []string{a.t.faint.Render("   reading the contexts")}
	case len(p.list) == 0:
		return wrap(
			"   There are no contexts: set KUBECONFIG, or create one with your provider's command line.", max(1, a.w-1),
		)
	}
	name, server := 7, 6
	for _, c := range p.list {
		name, server = max(name, width(oneLine(c.Context))), max(server, width(oneLine(c.Server)))
	}
	name, server = min(name, max(12, a.w*2/5)), min(server, a.w/3)
	if a.w < bothFrom {
		server = 0
	}
	out := []string{"   " + a.t.faint.Render(pad("context", name)+"  "+pad("server", server))}
	from, to := p.row.window(len(p.list), p.rowsShown())
	if h < headFrom {
		out = nil
	}
	for i := from; i < to; i++ {
		out = append(out, p.context(p.list[i], i == p.row.at, name, server))
	}
	if h >= headFrom && to-from < len(p.list) {
		out[0] = spread(out[0], a.t.faint.Render(fmt.Sprintf("%d to %d of %d ", from+1, to, len(p.list))), a.w)
	}
	return out
}

func (p *sides) context(c engine.Candidate, here bool, name, server int) string {
	a := p.a
	mark, label := "   ", pad(clipName(oneLine(c.Context), name), name)
	side, taken := p.spec.Taken(c.Context, p.side())
	switch {
	case here:
		mark, label = " "+a.t.accent.Render("▸")+" ", a.t.selected.Render(label)
	case taken:
		label = a.t.faint.Render(label)
	}
	line := mark + label + "  "
	if server > 0 {
		line += a.t.faint.Render(pad(clipName(oneLine(c.Server), server), server)) + "  "
	}
	if taken {
		return line + a.t.faint.Render("the "+p.guide.Sides[side].Name)
	}
	return line + p.met[c.Context].says(a)
}

// says describes the result of a preflight. While the preflight is running, it returns a progress indicator.
func (m *meeting) says(a *app) string {
	switch {
	case m == nil:
		return ""
	case !m.done:
		return a.t.accent.Render(a.spin())
	case m.err != nil:
		return a.t.bad.Render("✗") + " " + oneLine(m.err.Error())
	}
	return fmt.Sprintf(
		"%s %s  %s", a.t.good.Render("✓"), oneLine(m.is.Version),
		a.t.faint.Render(fmt.Sprintf("%d ms", max(1, m.is.Latency.Milliseconds()))),
	)
}

func (p *sides) saidLines() []string {
	if p.said == "" {
		return nil
	}
	lines := wrap(p.said, max(1, p.a.w-4))
	return hang(" "+p.a.t.warn.Render("!")+" ", squeeze([][]string{lines}, max(1, p.a.h/2-1), p.a.w-4))
}

func (p *sides) foot() string {
	a := p.a
	first := []hint{a.k.Open.as("choose"), {"↑↓", "move"}, a.k.Esc.hint(), a.k.Again.hint()}
	if !p.naming() && p.guide.Sides[p.side()].Optional {
		first = append(first, a.k.Omit.hint())
	}
	if !p.naming() {
		first = append(first, a.k.Hand.as("a facts file"))
	}
	if p.file != unfiled {
		return a.footer([]hint{a.k.Open.as("use it"), a.k.Esc.hint()}, []hint{a.k.Interrupt.as("quit")})
	}
	last := []hint{a.k.Help.hint(), a.k.Quit.hint()}
	if p.naming() {
		first, last = []hint{a.k.Open.as("begin"), a.k.Esc.hint()}, []hint{a.k.Interrupt.as("quit")}
		if p.busy {
			first = []hint{{a.spin(), "opening"}}
		}
	}
	return a.footer(first, last)
}
