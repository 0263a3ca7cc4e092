package lines

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/linkfile"
	"carrick/ui/model"
)

// open opens the link in the options and runs its checks. If there is none, it first lets the user define a new link.
func (w *walk) open() error {
	if w.o.Link != nil {
		return w.connect(w.o.Link, true)
	}
	for _, n := range w.o.Notes {
		w.out.say("%s", n)
	}
	for {
		g, err := w.pickGuide()
		if err != nil {
			return err
		}
		err = w.newLink(g)
		if !errors.Is(err, errBack) {
			return err
		}
		if w.o.Guide != "" {
			w.out.say("This is the first question: q quits.")
		}
	}
}

// pickGuide asks for the guide if the options name none.
func (w *walk) pickGuide() (*steps.Guide, error) {
	list := w.o.Guides
	if g := w.o.Named(); g != nil {
		return g, nil
	}
	w.out.say("Which guide?")
	for i, g := range list {
		w.out.sentence(
			"%d: %s, %s, %s and %s", i+1, g.Title, steps.Plural(len(g.Steps), "step"), g.Sides[steps.Local].Name,
			g.Sides[steps.Remote].Name,
		)
	}
	for {
		text, err := w.ask(question{
			prompt: fmt.Sprintf("Guide, 1 to %d [1]:", len(list)),
			help: func() {
				for i, g := range list {
					w.out.sentence("%d: %s: %s", i+1, g.Name, g.About)
				}
			},
			instead: "carrick --guide NAME --name NAME --context NAME --remote-context NAME sets them, and carrick guides " +
				"lists the guides",
		})
		if errors.Is(err, errBack) {
			w.out.say("This is the first question: q quits.")
			continue
		}
		if err != nil {
			return nil, err
		}
		text = strings.TrimSpace(text)
		if text == "" {
			text = "1"
		}
		for i, g := range list {
			if text == strconv.Itoa(i+1) || strings.EqualFold(text, g.Name) || strings.EqualFold(text, g.Title) {
				return g, nil
			}
		}
		w.out.sentence("%s is not a guide: enter a number from 1 to %d, or a name", quoted(text), len(list))
	}
}

// newLink asks for the sides and the name, and opens the link. If the user goes back to the choice of a guide, it
// returns errBack.
func (w *walk) newLink(g *steps.Guide) error {
	p := &sides{w: w, guide: g, spec: model.Endpoints{}, met: map[string]*meeting{}}
	if err := p.read(); err != nil {
		return err
	}
	for at := 0; ; {
		err := p.ask(at)
		switch {
		case errors.Is(err, errBack) && p.before(at) < 0:
			return errBack
		case errors.Is(err, errBack):
			at = p.before(at)
		case errors.Is(err, errSame):
			at = 1
		case err != nil:
			return err
		case at == len(steps.Sides):
			return nil
		default:
			at++
		}
	}
}

func (p *sides) name() error {
	w := p.w
	given, suggested := w.o.Name, p.spec.Suggest(p.guide, p.link, "")
	for {
		text := given
		if given == "" {
			var err error
			text, err = w.ask(question{
				prompt: fmt.Sprintf("Name of this link [%s]:", suggested),
				help: func() {
					w.out.sentence(
						"The name of the link file. carrick also labels the objects that it creates with this name: lower-case "+
							"letters, digits and hyphens, at most %d",
						linkfile.MaxName,
					)
				},
				instead: "carrick --name NAME sets it",
			})
			if err != nil {
				return err
			}
			if text = strings.TrimSpace(text); text == "" {
				text = suggested
			}
		}
		given = ""
		if err := linkfile.CheckName(text); err != nil {
			w.out.sentence("%s", err)
			continue
		}
		done, err := p.openNamed(text)
		if err != nil || done {
			return err
		}
	}
}

// openNamed opens a new link with the given name. If a link with that name already connects the same two sides, it
// opens the existing link.
func (p *sides) openNamed(name string) (bool, error) {
	l, existing, err := p.w.o.NewLink(p.guide, name, p.spec)
	if err != nil {
		p.w.out.sentence("%s", err)
		return false, nil
	}
	return p.opened(p.w.connect(l, existing))
}

// opened prints an openError and returns false, so that the caller asks for the name again. It returns any other error.
func (p *sides) opened(err error) (bool, error) {
	if e := (*openError)(nil); errors.As(err, &e) {
		p.w.trouble("This link can't be opened: ", e.err)
		return false, nil
	}
	return err == nil, err
}

// openError is returned if a link can't be opened.
type openError struct{ err error }

func (e *openError) Error() string { return e.err.Error() }
func (e *openError) Unwrap() error { return e.err }

// connect opens a link. A new link is saved. For an existing link, connect runs the checks and continues at the first
// open step.
func (w *walk) connect(l *linkfile.Link, resumed bool) error {
	err := w.wait(func() string { return "the link to open" }, nil, func(context.Context) error {
		s, err := w.o.Connect(l, resumed)
		if err == nil {
			w.live = model.NewLive(w.ctx, s)
		}
		return err
	})
	if err != nil && !w.mine(err) {
		return &openError{err}
	}
	if err != nil {
		return err
	}
	w.follow(w.live.Start()...)
	title := w.guide().Title
	if !resumed {
		w.out.sentence(
			"This is a new link for %s: %s, saved in %s. It has %s", title, l.Name(), w.path(),
			steps.Plural(len(w.guide().Steps), "step"),
		)
		w.sides()
		return nil
	}
	w.out.sentence("This is %s, link %s", title, l.Name())
	w.sides()
	w.out.say("Checking both sides.")
	if err := w.untilLooked(w.guide().Cells(), time.Time{}); err != nil {
		return err
	}
	w.out.sentence("In total: %s", tally(w.live.Board.Count("")))
	w.at = w.live.FirstOpen()
	return nil
}

func (w *walk) sides() {
	for _, side := range steps.Sides {
		end := w.live.Session.Endpoint(side)
		if end.Cluster == nil && end.Host == nil {
			w.out.sentence("%s: nothing", w.role(side))
			continue
		}
		w.out.say("%s: %s", w.role(side), end.Name)
	}
}
