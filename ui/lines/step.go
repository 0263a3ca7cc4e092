package lines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// step prints a step and executes choices until another step is chosen.
func (w *walk) step() error {
	s := w.current()
	w.summed = false
	w.out.say("")
	w.out.sentence("Step %d of %d: %s", w.at+1, len(w.guide().Steps), s.Title)
	w.out.sentence("%s", s.Why)
	asked, err := w.neededAnswers()
	switch {
	case errors.Is(err, errBack):
		w.out.say("An answer is missing: e opens the question.")
	case err != nil:
		return err
	}
	if err := w.untilLooked(w.leans(s.Name), time.Time{}); err != nil {
		return err
	}
	if n := len(asked); n > 0 {
		w.out.sentence("Answers: %d; e goes through them", n)
	}
	w.tell(w.rows(), false)
	if err := w.outlook(); err != nil {
		return err
	}
	w.out.say("%s", w.brief())
	return w.choose(w.stepPrompt(), w.since, w.choices())
}

func (w *walk) stepPrompt() string {
	return fmt.Sprintf("Step %d, %s:", w.at+1, w.current().Title)
}

// outlook prints how much applying the step would change.
func (w *walk) outlook() error {
	s := w.current()
	if len(s.Actions) == 0 {
		w.out.say("This step only runs checks.")
		return nil
	}
	p, err := w.forecast()
	switch {
	case errors.Is(err, errCancelled):
	case err != nil && w.mine(err):
		return err
	case err != nil:
		w.cannot(err)
	case p.Empty():
		w.out.say("There is nothing to change here.")
	default:
		w.out.sentence("a applies %s", steps.Plural(model.ChangesOf(p, ""), "change"))
	}
	return nil
}

func (w *walk) forecast() (*engine.Plan, error) {
	var p model.Planned
	err := w.wait(func() string { return "the plan of this step" }, nil, func(ctx context.Context) error {
		w.live.ForecastDue(w.current().Name, true)
		p = w.live.Forecast(ctx, w.current().Name)
		return p.Err
	})
	return p.Plan, err
}

// deed returns a deed for the current step. The arguments are the same verb in two forms, such as "Apply" and
// "Applying".
func (w *walk) deed(verb, doing string) deed {
	s := w.current()
	return deed{
		scope: engine.Scope{Steps: []string{s.Name}}, what: "step " + s.Title, verb: verb, doing: doing,
		undo: verb == undoVerb, option: " --step " + s.Name,
	}
}

const undoVerb = "Undo"

func (w *walk) apply(string) error {
	if len(w.current().Actions) == 0 {
		w.out.say("This step changes nothing: it only runs checks.")
		return nil
	}
	return w.changeAndTell(w.deed("Apply", "applying"))
}

func (w *walk) undo(args string) error {
	if args == "all" {
		return w.undoAll("")
	}
	if len(w.current().Actions) == 0 {
		w.out.say("This step changes nothing, so there is nothing to undo. u all undoes the whole link.")
		return nil
	}
	return w.changeAndTell(w.deed(undoVerb, "undoing"))
}

func (w *walk) undoAll(string) error {
	return w.changeAndTell(deed{what: "this link", verb: undoVerb, doing: "undoing all of", undo: true})
}

// changeAndTell executes a change, waits for its effects, and prints the checks that changed.
func (w *walk) changeAndTell(d deed) error {
	before := w.changed
	if err := w.change(d); err != nil {
		return err
	}
	if w.changed.Equal(before) {
		return nil
	}
	if w.at == len(w.guide().Steps) {
		return nil // the summary runs all checks
	}
	if err := w.settled(true); err != nil {
		return err
	}
	w.tellChanged()
	return nil
}

func (w *walk) diff(string) error {
	if len(w.current().Actions) == 0 {
		w.out.say("This step changes nothing: it only runs checks.")
		return nil
	}
	p, err := w.forecast()
	switch {
	case errors.Is(err, errCancelled):
	case err != nil && w.mine(err):
		return err
	case err != nil:
		w.cannot(err)
	default:
		w.sayPlan(p, true)
	}
	return nil
}

const noAction = "carrick has no action for this check; see its fix."

// fix runs only the action that fixes one check, and what must run again because of it.
func (w *walk) fix(args string) error {
	r, ok := w.rowOf(args, func(r row) bool {
		return slices.ContainsFunc(r.cells, func(c steps.Cell) bool { act, _ := w.live.Offer(c); return act != nil })
	})
	var names, titles []string
	var step *steps.Step
	for _, c := range r.cells {
		if act, of := w.live.Offer(c); act != nil {
			names, titles, step = append(names, act.Name), append(titles, model.OneLine(act.Title)), of
		}
	}
	switch {
	case !ok:
		return nil
	case len(names) > 0:
	case r.check.FixedBy != "" && !w.broken(r):
		w.out.say("This check passes: there is nothing to fix.")
		return nil
	default: // no action fixes it, the answers select another fix, or everything that the action creates already exists
		w.out.say(noAction)
		return nil
	}
	return w.changeAndTell(deed{
		scope: engine.Scope{Actions: names, Follow: true}, what: listed(titles), verb: "Apply", doing: "fixing",
		option: " --step " + step.Name,
	})
}

// broken reports whether a check does not pass on a side.
func (w *walk) broken(r row) bool {
	for _, c := range r.cells {
		if s := w.live.Board.Verdict(c).Status; s != steps.Pass && s != steps.Skip {
			return true
		}
	}
	return false
}

// again runs the checks of this step again and prints what has changed.
func (w *walk) again(string) error {
	if err := w.settled(false); err != nil {
		return err
	}
	w.tellChanged()
	return nil
}

// since prints the checks that have changed since they were last printed.
func (w *walk) since(string) error {
	w.tellChanged()
	return nil
}

func (w *walk) checks(string) error {
	w.tell(w.rows(), true)
	return nil
}

func (w *walk) explain(args string) error {
	if r, ok := w.rowOf(args, w.broken); ok {
		w.explained(r)
	}
	return nil
}

func (w *walk) answers(string) error {
	err := w.askAnswers(false)
	if errors.Is(err, errBack) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := w.settled(false); err != nil {
		return err
	}
	w.tellChanged()
	return w.outlook()
}
