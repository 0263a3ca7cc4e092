package ui

import (
	"context"
	"fmt"
	"time"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui/model"
)

// sides is the page for choosing the two sides, one after the other, and the name of the link.
type sides struct {
	a     *app
	guide *steps.Guide
	list  []engine.Candidate
	read  bool // the contexts have been read
	err   error
	met   map[string]*meeting // by context
	row   cursor
	spec  model.Endpoints // the choices so far
	stage int             // 0 and 1 are the sides, 2 is the name
	input textinput.Model // the name, a host's directory, a facts file, or its passphrase
	file  filing          // whether the field asks for a facts file or its passphrase
	name  string          // name of the link in the facts file
	said  string          // a message, such as an error
	busy  bool            // the link is being opened
	draft string          // the name typed before going back

	signer string // fingerprint of the key that signed the facts file
}

type meeting struct {
	done bool
	is   engine.Preflight
	err  error
}

type candidatesMsg struct {
	list []engine.Candidate
	err  error
}

type metMsg struct {
	context string
	is      engine.Preflight
	err     error
}

const meetWithin = 10 * time.Second

func newSidesPage(a *app, g *steps.Guide) *sides {
	p := &sides{a: a, guide: g, met: map[string]*meeting{}, spec: model.Endpoints{}, input: textinput.New()}
	p.input.Prompt = ""
	a.t.dress(&p.input)
	for side, name := range a.o.Sides {
		if name != "" {
			p.spec[side] = linkfile.EndpointSpec{Context: name}
		}
	}
	for side, host := range a.o.Hosts {
		p.spec[side] = linkfile.EndpointSpec{Host: &host}
	}
	p.advance()
	return p
}

func (p *sides) begin() tea.Cmd {
	candidates := p.a.o.Candidates
	return func() tea.Msg {
		list, err := candidates()
		return candidatesMsg{list, err}
	}
}

func (p *sides) about() string {
	return "A side is a context of your kubeconfig. carrick reads it as kubectl does, and never changes it."
}

func (p *sides) typing() bool { return p.naming() || p.onHost() || p.file != unfiled }

func (p *sides) pace() time.Duration {
	for _, m := range p.met {
		if !m.done {
			return spinning
		}
	}
	return 0
}

func (p *sides) side() steps.Side { return steps.Sides[min(p.stage, 1)] }

func (p *sides) naming() bool { return p.stage == len(steps.Sides) }

func (p *sides) onHost() bool {
	return !p.naming() && p.guide.Sides[p.side()].Kind == steps.Host
}

func (p *sides) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case candidatesMsg:
		p.list, p.err, p.read = msg.list, msg.err, true
		p.row.at = p.spec.Likely(p.list, p.side())
		return p.meet()
	case metMsg:
		p.met[msg.context] = &meeting{true, msg.is, msg.err}
		p.sameCluster()
		return nil
	case openedMsg:
		p.busy = false
		if msg.err != nil {
			p.said = oneLine(msg.err.Error())
		}
		return nil
	case takenNameMsg:
		return p.tookName(msg)
	case tea.KeyMsg:
		return p.pressed(msg)
	}
	if p.typing() {
		var cmd tea.Cmd
		p.input, cmd = p.input.Update(msg)
		return cmd
	}
	return nil
}

func (p *sides) pressed(k tea.KeyMsg) tea.Cmd {
	if p.busy {
		return nil
	}
	switch {
	case key.Matches(k, p.a.k.Esc.Binding):
		return p.back()
	case p.typing():
		if key.Matches(k, p.a.k.Open.Binding) && p.file != unfiled {
			return p.filed()
		}
		if key.Matches(k, p.a.k.Open.Binding) {
			return p.entered()
		}
		p.said = ""
		var cmd tea.Cmd
		p.input, cmd = p.input.Update(k)
		return cmd
	case p.row.move(k, p.a.k, len(p.list), p.rowsShown()):
		p.said = ""
		return p.meet()
	case key.Matches(k, p.a.k.Open.Binding, p.a.k.Next.Binding):
		return p.choose()
	case key.Matches(k, p.a.k.Back.Binding):
		return p.back()
	case key.Matches(k, p.a.k.Hand.Binding):
		return p.askFile()
	case key.Matches(k, p.a.k.Again.Binding, p.a.k.All.Binding):
		p.met = map[string]*meeting{}
		return p.begin()
	case key.Matches(k, p.a.k.Omit.Binding) && p.guide.Sides[p.side()].Optional:
		p.stage++
		return p.advance()
	}
	return nil
}

// resized starts the preflights of contexts that have become visible.
func (p *sides) resized() tea.Cmd {
	if p.naming() {
		return nil
	}
	return p.meet()
}

// meet starts the preflights of visible and chosen contexts, each only once.
func (p *sides) meet() tea.Cmd {
	ask := map[string]bool{}
	from, to := p.row.window(len(p.list), p.rowsShown())
	for _, c := range p.list[from:to] {
		ask[c.Context] = true
	}
	for _, s := range p.spec {
		ask[s.Context] = s.Context != ""
	}
	var cmds []tea.Cmd
	for name, wanted := range ask {
		if !wanted || p.met[name] != nil {
			continue
		}
		p.met[name] = &meeting{}
		meet, parent := p.a.o.Preflight, p.a.ctx
		cmds = append(cmds, func() tea.Msg {
			ctx, cancel := context.WithTimeout(parent, meetWithin)
			defer cancel()
			m, err := meet(ctx, name)
			return metMsg{name, m, err}
		})
	}
	return tea.Batch(cmds...)
}

// choose selects the context under the cursor for the current side.
func (p *sides) choose() tea.Cmd {
	if len(p.list) == 0 {
		return nil
	}
	c := p.list[p.row.at]
	if other, taken := p.spec.Taken(c.Context, p.side()); taken {
		p.said = fmt.Sprintf(
			"%s is already the %s; the %s must be another cluster", oneLine(c.Context), p.guide.Sides[other].Name,
			p.guide.Sides[p.side()].Name,
		)
		return nil
	}
	p.spec[p.side()] = linkfile.EndpointSpec{Context: c.Context}
	if p.sameCluster() {
		return nil
	}
	p.stage++
	return p.advance()
}

// sameCluster reports whether both contexts are the same cluster. If so, it removes the choice of the remote side.
// Before both clusters have answered, it returns false.
func (p *sides) sameCluster() bool {
	same := p.spec.Same(func(context string) engine.Preflight {
		if m := p.met[context]; m != nil {
			return m.is
		}
		return engine.Preflight{}
	})
	if same == "" {
		return false
	}
	p.said = oneLine(same)
	delete(p.spec, steps.Remote)
	p.stage = 1
	return true
}

// back goes from the name to the second side, from there to the first side, and then to the guides.
func (p *sides) back() tea.Cmd {
	p.said = ""
	if p.file != unfiled {
		return p.unfile()
	}
	if p.naming() {
		p.draft = p.input.Value()
	}
	p.input.Blur()
	if p.stage == 0 {
		if p.a.o.Guide == "" {
			return p.a.turn(&guides{a: p.a})
		}
		return nil
	}
	p.stage--
	delete(p.spec, p.side())
	return p.advance()
}
