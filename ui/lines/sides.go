package lines

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui/model"
)

// sides collects the two sides of a new link.
type sides struct {
	w     *walk
	guide *steps.Guide
	list  []engine.Candidate
	spec  model.Endpoints
	link  string // name of the link in the facts file

	mu   sync.Mutex
	met  map[string]*meeting // by context
	news chan struct{}       // closed and replaced when a context has answered
}

// errSame is returned if both sides turned out to be the same cluster.
var errSame = errors.New("the same cluster twice")

// read reads the contexts if a side must be chosen from them.
func (p *sides) read() error {
	p.news = make(chan struct{})
	pick := false
	var names []string
	for _, side := range steps.Sides {
		switch name := p.w.o.Sides[side]; {
		case name != "":
			p.spec[side] = linkfile.EndpointSpec{Context: name}
			names = append(names, name)
		case p.guide.Sides[side].Kind != steps.Host:
			pick = true
		}
	}
	if pick {
		list, err := p.w.o.Candidates()
		if err != nil {
			return err
		}
		p.list = list
		names = nil
		for _, c := range list {
			names = append(names, c.Context)
		}
	}
	p.meet(names)
	return nil
}

// before returns the index of the previous question that was asked, or -1.
func (p *sides) before(at int) int {
	for at--; at >= 0; at-- {
		if p.w.o.Sides[steps.Sides[at]] == "" {
			return at
		}
	}
	return -1
}

// ask asks one question about a new link. The questions about the sides come first, then the one about the name.
func (p *sides) ask(at int) error {
	if at == len(steps.Sides) {
		return p.name()
	}
	side := steps.Sides[at]
	var err error
	switch {
	case p.w.o.Sides[side] != "" && !p.spec[side].IsZero():
	case p.guide.Sides[side].Kind == steps.Host:
		return p.folder(side)
	default:
		err = p.pick(side)
	}
	if err == nil && at == 1 {
		return p.differ()
	}
	return err
}

func (p *sides) folder(side steps.Side) error {
	role := p.guide.Sides[side].Name
	for {
		text, err := p.w.ask(question{
			prompt: fmt.Sprintf("Root directory of the %s [/]:", role),
			help: func() {
				p.w.out.sentence("The %s is a machine: / is this machine, another directory represents one", role)
			},
			instead: "carrick LINK, with a link file that names both sides",
		})
		if err != nil {
			return err
		}
		if text = strings.TrimSpace(text); text == "" {
			text = "/"
		}
		if strings.HasPrefix(text, "/") {
			known := p.w.o.Hosts[side]
			p.spec[side] = linkfile.EndpointSpec{Host: &linkfile.HostSpec{Root: text, Here: known.Here && known.Root == text}}
			return nil
		}
		p.w.out.sentence("%s is not an absolute path: / is this machine, another directory represents one", quoted(text))
	}
}

func (p *sides) pick(side steps.Side) error {
	w, role := p.w, p.guide.Sides[side]
	delete(p.spec, side)
	if len(p.list) == 0 {
		return errors.New("there are no contexts: set KUBECONFIG, or create one with your provider's command line")
	}
	var names []string
	for _, c := range p.list {
		names = append(names, c.Context)
	}
	if err := p.known(meetFirst, names...); err != nil {
		return err
	}
	w.out.sentence("Which context is the %s?", role.Name)
	p.contexts(side)
	def := p.spec.Likely(p.list, side)
	for {
		text, err := w.ask(question{
			prompt: fmt.Sprintf("The %s, 1 to %d [%d]:", role.Name, len(p.list), def+1),
			help: func() {
				w.out.say("A side is a context of your kubeconfig. carrick reads it as kubectl does, and never changes it. r " +
					"reads the list and contacts the clusters again. h opens a facts file from the other admin.")
				p.contexts(side)
			},
			instead: map[steps.Side]string{
				steps.Local: "carrick --context NAME sets it", steps.Remote: "carrick --remote-context NAME sets it",
			}[side],
		})
		if err != nil {
			return err
		}
		text = strings.TrimSpace(text)
		if text == "" {
			text = strconv.Itoa(def + 1)
		}
		if text == "r" {
			p.contexts(side)
			continue
		}
		if text == "h" {
			taken, err := p.handed(side)
			if err != nil {
				return err
			}
			if taken {
				return nil
			}
			continue
		}
		if text == "0" && role.Optional {
			return nil
		}
		name, why := p.chosen(side, text)
		if why != "" {
			w.out.sentence("%s", why)
			continue
		}
		p.spec[side] = linkfile.EndpointSpec{Context: name}
		return nil
	}
}

// chosen returns the typed context, or why it cannot be chosen.
func (p *sides) chosen(side steps.Side, text string) (name, why string) {
	for i, c := range p.list {
		if text != strconv.Itoa(i+1) && text != c.Context {
			continue
		}
		if p.spec[side.Peer()].Context == c.Context {
			return "", fmt.Sprintf(
				"%s is already the %s; the %s must be another cluster", c.Context, p.guide.Sides[side.Peer()].Name,
				p.guide.Sides[side].Name,
			)
		}
		return c.Context, ""
	}
	return "", fmt.Sprintf("%s is not in the list: enter a number from 1 to %d, or a name", quoted(text), len(p.list))
}

// contexts prints the numbered contexts with their preflights.
func (p *sides) contexts(side steps.Side) {
	for i, c := range p.list {
		if p.spec[side.Peer()].Context == c.Context {
			p.w.out.sentence("%d: %s, already the %s", i+1, c.Context, p.guide.Sides[side.Peer()].Name)
			continue
		}
		p.w.out.sentence("%d: %s, at %s: %s", i+1, c.Context, c.Server, p.says(c.Context))
	}
	if p.spec[side.Peer()].Facts == "" {
		p.w.out.sentence("h: a facts file from the %s's admin instead of a context", p.guide.Sides[side].Name)
	}
	if p.guide.Sides[side].Optional {
		p.w.out.sentence("0: leave the %s out", p.guide.Sides[side].Name)
	}
}

// differ rejects the same cluster on both sides. It waits for both preflights.
func (p *sides) differ() error {
	one, two := p.spec[steps.Local].Context, p.spec[steps.Remote].Context
	if one == "" || two == "" {
		return nil
	}
	if err := p.known(meetWithin, one, two); err != nil {
		return err
	}
	why := p.spec.Same(func(context string) engine.Preflight {
		p.mu.Lock()
		defer p.mu.Unlock()
		if m := p.met[context]; m != nil {
			return m.is
		}
		return engine.Preflight{}
	})
	if why == "" {
		return nil
	}
	if p.w.o.Sides[steps.Remote] != "" {
		return errors.New(model.OneLine(why))
	}
	p.w.out.say("%s", why)
	return errSame
}
