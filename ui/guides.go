package ui

import (
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
)

// guides is the page for choosing a guide.
type guides struct {
	a   *app
	row cursor
}

func (p *guides) typing() bool        { return false }
func (p *guides) pace() time.Duration { return 0 }

func (p *guides) about() string {
	return "carrick joins two clusters, step by step, and checks each step live on both sides. Pick a guide."
}

func (p *guides) update(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyMsg)
	list := p.a.o.Guides
	switch {
	case !ok || len(list) == 0:
	case p.row.move(k, p.a.k, len(list), len(list)):
	case key.Matches(k, p.a.k.Open.Binding, p.a.k.Next.Binding):
		return p.a.turn(newSidesPage(p.a, list[p.row.at]))
	case key.Matches(k, p.a.k.Page.Binding):
		return p.a.lay(p.a.pagePanel("The published guide", []string{list[p.row.at].Page}))
	}
	return nil
}

func (p *guides) view() []string {
	a := p.a
	body := []string{a.headline("joins two clusters", "new link")}
	if a.h >= middleFrom {
		body = append(body, a.rule(), "", " Which guide?", "")
	}
	body = append(body, p.rows(a.h-1-len(body))...)
	return append(
		fill(body, a.h-1),
		a.footer([]hint{a.k.Open.as("choose"), {"↑↓", "move"}, a.k.Page.hint()}, []hint{a.k.Help.hint(), a.k.Quit.hint()}),
	)
}

// rows lists the guides. Only the selected guide has a description.
func (p *guides) rows(h int) []string {
	a := p.a
	var above, out []string
	for i, g := range a.o.Guides {
		if i != p.row.at {
			out = append(out, "   "+g.Title, "")
			continue
		}
		above = out
		out = append(out, " "+a.t.accent.Render("▸")+" "+a.t.selected.Render(" "+g.Title+" "))
		for _, l := range wrap(g.About, max(1, min(a.w-6, 76))) {
			out = append(out, "     "+l)
		}
		out = append(out, "     "+a.t.faint.Render(sidesOf(g)), "")
	}
	if len(out) > h && len(above) > 0 {
		out = out[min(len(above), len(out)-h):]
	}
	return out
}

func sidesOf(g *steps.Guide) string {
	word := func(s steps.Side) string {
		r := g.Sides[s]
		text := r.Name
		if r.Kind == steps.Host {
			text += " (a machine)"
		}
		if r.Optional {
			text += " (optional)"
		}
		return text
	}
	return steps.Plural(len(g.Steps), "step") + " · " + word(steps.Local) + " → " + word(steps.Remote)
}
