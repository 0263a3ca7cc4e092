package lines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/farewell"
	"carrick/ui/model"
)

// summary prints the state of the steps, the remaining work, and the next commands.
func (w *walk) summary() error {
	w.out.say("")
	w.out.sentence("Summary of %s", w.live.Session.Link().Name())
	since := time.Now()
	w.follow(w.live.Again()...)
	if err := w.untilLooked(w.guide().Cells(), since); err != nil {
		return err
	}
	w.sayStand()
	w.summed = true
	w.out.say("Choices: o what this link created, u undo all, r check again, b back, q quit, ? for all.")
	return w.choose("Summary:", w.summaryAgain, []choice{
		{"o", "objects", "", "lists the objects that this link created", w.sayMade},
		{"m", "map", "", "reads the map of both sides, with the state of each object", w.sayMap},
		{"u", "undo", "", "undoes the whole link: shows the plan, and asks", w.undoHere},
		{"r", "again", "", "runs all checks again", w.summaryAgain},
		{"h", "handover", "", "writes a facts file of one side for the admin of the other", w.handOver},
		{"b", "back", "", "goes to the last step", nil},
		{"l", "log", "", "reads the log: changes and errors", w.sayLog},
		{"n", "next", "", "goes to the first step that is not done", w.toFirst},
	})
}

func (w *walk) toFirst(string) error {
	w.at = w.live.FirstOpen()
	return errMoved
}

func (w *walk) undoHere(string) error {
	before := w.changed
	if err := w.undoAll(""); err != nil {
		return err
	}
	if w.changed.Equal(before) {
		return nil
	}
	return errMoved // print the summary again
}

func (w *walk) summaryAgain(string) error { return errMoved }

// sayStand prints the state of the steps, the failures, upcoming expiries, and the next commands.
func (w *walk) sayStand() {
	n := w.live.Board.Count("")
	if n.Green() {
		w.out.sentence("All checks pass: %s", tally(n))
	} else {
		w.out.sentence("Not all checks pass: %s", tally(n))
	}
	w.sayStanding()
	w.upcoming()
	if !w.o.Passing {
		w.sayCommands()
	}
}

// sayStanding prints the steps, one per line, and then the failures.
func (w *walk) sayStanding() {
	for i := range w.guide().Steps {
		s := &w.guide().Steps[i]
		w.out.sentence("Step %d, %s: %s", i+1, s.Title, tally(w.live.Board.Count(s.Name)))
	}
	list, more := w.stand().Wrongs()
	for _, l := range list {
		w.out.sentence("%s: %s", word(l.State), l.Text)
	}
	if more > 0 {
		w.out.sentence("And %d more", more)
	}
}

// upcoming prints the times when a verdict will change, such as when a credential expires.
func (w *walk) upcoming() {
	sides := map[string][]string{} // the sides, by day and check
	var list []string
	for _, d := range w.live.Dues(time.Now()) {
		check, _ := w.guide().Check(d.Cell.Check)
		text := fmt.Sprintf("Expires on %s, %%s: %s", d.At.Format("2 January 2006"), model.OneLine(check.Title))
		if sides[text] == nil {
			list = append(list, text)
		}
		sides[text] = append(sides[text], w.role(d.Cell.Side))
	}
	for _, text := range list {
		w.out.sentence("%s", strings.Replace(text, "%s", listed(sides[text]), 1))
	}
}

// sayCommands prints the commands for working outside the wizard.
func (w *walk) sayCommands() {
	for _, c := range w.stand().Commands() {
		w.out.say("%s: %s", c.Run, c.What)
	}
}

// sayMade prints what undo would revert.
func (w *walk) sayMade(string) error {
	var got model.Planned
	err := w.wait(func() string { return "what this link created" }, nil, func(ctx context.Context) error {
		got = w.live.Show(ctx, engine.Scope{}, true)
		return got.Err
	})
	p := got.Plan
	switch {
	case errors.Is(err, errCancelled):
		return nil
	case err != nil && w.mine(err):
		return err
	case err != nil:
		w.trouble("Unknown: ", err)
		return nil
	}
	for _, side := range steps.Sides {
		n := model.ChangesOf(p, side)
		w.out.sentence("On the %s this link created %s", w.role(side), things(n))
		for i := len(p.Actions) - 1; i >= 0; i-- {
			for _, it := range p.Actions[i].Change.Items {
				switch {
				case p.Actions[i].Side != side:
				case it.Verb.Changes():
					w.out.sentence("%s", it.What)
				case it.Left:
					w.out.sentence("Undo keeps %s: it %s", it.What, it.Note)
				}
			}
		}
	}
	return nil
}

func things(n int) string {
	if n == 0 {
		return "nothing"
	}
	return steps.Plural(n, "resource")
}

// farewell prints the final state and the next commands.
func (w *walk) farewell(left error) {
	if w.live == nil {
		if errors.Is(left, ErrInterrupted) {
			w.out.say("%s", farewell.Nothing)
		}
		return
	}
	w.out.say("")
	w.out.sentence("%s, link %s: %s", w.guide().Title, w.live.Session.Link().Name(), tally(w.live.Board.Count("")))
	if n := w.live.Behind(w.guide().Cells(), w.changed); n > 0 && !w.changed.IsZero() {
		w.out.sentence("%s", farewell.Behind(n))
	}
	if !w.summed { // otherwise the summary has just been printed
		w.sayStanding()
	}
	switch {
	case w.o.Passing:
		w.out.say("%s", farewell.Gone)
	case !w.summed:
		w.sayCommands()
	}
}
