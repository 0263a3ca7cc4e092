package lines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// deed is an apply or undo to plan, confirm and execute.
type deed struct {
	scope  engine.Scope
	undo   bool
	what   string // such as "step Identity"
	doing  string // such as "Applying"
	verb   string // the verb in the question, such as "Apply"
	option string // command-line arguments for the same deed, such as " --step identity"
}

// plan plans a deed and checks the user's permissions for it.
func (w *walk) plan(d deed) (p model.Planned, err error) {
	err = w.wait(func() string { return "the plan of " + d.what }, nil, func(ctx context.Context) error {
		p = w.live.Plan(ctx, d.scope, d.undo)
		return p.Err
	})
	return p, err
}

// change plans a deed, prints exactly what it changes, asks for confirmation, and executes it. It prints failures
// itself. It returns an error only if the user left.
func (w *walk) change(d deed) error {
	got, err := w.plan(d)
	for err == nil && len(got.Signers) > 0 {
		if err = w.confirmSigners(d, got.Signers); err == nil {
			got, err = w.plan(d)
		}
	}
	p := got.Plan
	switch {
	case errors.Is(err, errBack):
		w.out.say("Nothing was changed.")
		return nil
	case errors.Is(err, errQuit) || errors.As(err, new(*NoInputError)):
		return err
	case errors.Is(err, errCancelled):
		return nil
	case err != nil && w.mine(err):
		return err
	case err != nil:
		w.cannot(err)
		return nil
	case p.Empty() && len(p.Left()) > 0:
		for _, it := range p.Left() {
			w.out.sentence("%s is kept: it %s", it.What, it.Note)
		}
		return nil
	case p.Empty() && d.undo:
		w.out.sentence("There is nothing to undo: no object that this link created in %s is left", d.what)
		return nil
	case p.Empty():
		w.out.say("There is nothing to change.")
		return nil
	case len(got.Missing) > 0:
		w.printMissing(p, got.Missing)
		return nil
	}
	allowed, err := w.confirm(d, p)
	if errors.Is(err, errBack) {
		w.out.say("Nothing was changed.")
		return nil
	}
	if err != nil {
		return err
	}
	return w.do(d, p, allowed)
}

// confirmSigners asks which signing keys of facts files to trust. If the user says no, it returns errBack.
func (w *walk) confirmSigners(d deed, list []engine.Signer) error {
	for _, s := range list {
		w.out.sentence("%s", model.OneLine(s.String()))
		if err := w.yes(s.Question(), w.command(d)+" --signer "+s.Fingerprint, nil); err != nil {
			return err
		}
		if err := w.live.Session.Confirm(s); err != nil {
			w.trouble("The key was not saved: ", err)
			return errBack
		}
	}
	return nil
}

// command returns the command that executes a deed without asking for confirmation.
func (w *walk) command(d deed) string {
	verb := strings.ToLower(strings.Fields(d.verb)[0])
	if d.undo {
		verb = "undo"
	}
	return "carrick " + verb + " " + w.path() + d.option + " --yes"
}

// cannot prints why something cannot be planned.
func (w *walk) cannot(err error) {
	if missing := (*steps.MissingError)(nil); errors.As(err, &missing) {
		var names []string
		for _, q := range missing.Questions {
			names = append(names, q.Title)
		}
		w.out.sentence("An answer is required first: %s. e opens the question", listed(names))
		return
	}
	w.trouble("Planning failed: ", err)
}

// do executes a confirmed plan and prints the result.
func (w *walk) do(d deed, p *engine.Plan, allowed steps.ApplyOptions) error {
	k := &work{w: w, Run: model.NewRun(p)}
	w.note(d.doing + " " + d.what)
	said := make(chan func())
	say := func(e steps.Event) {
		select {
		case said <- func() { k.heard(e) }:
		case <-w.ctx.Done():
		}
	}
	began := time.Now()
	var failed error
	err := w.wait(k.awaits, said, func(ctx context.Context) error {
		if d.undo {
			failed = w.live.Session.Undo(ctx, p, say)
		} else {
			failed = w.live.Session.Apply(ctx, p, allowed, say)
		}
		return failed
	})
	if k.Events > 0 {
		w.changed = time.Now()
	}
	w.live.ForgetPlans()
	switch {
	case errors.Is(err, errCancelled) && failed != nil && k.Events == 0:
		w.out.say("Stopped by you: nothing was changed.")
	case errors.Is(err, errCancelled) && failed != nil:
		w.out.sentence(
			"Stopped by you after %s. Completed changes are kept; running it again continues from there",
			steps.Plural(k.Events, "change"),
		)
	case err != nil && w.mine(err) && !errors.Is(err, errCancelled):
		return err
	case failed != nil:
		w.trouble("Error: ", failed)
	default:
		k.Succeeded()
		w.out.sentence("Done: %s in %s", steps.Plural(k.Changed, "change"), span(max(time.Second, time.Since(began))))
		for _, it := range p.ByOthers() {
			w.out.sentence("Undo keeps %s: %s", it.What, it.Note)
		}
	}
	return nil
}

// confirm prints what a plan changes and asks for confirmation. Taking over fields of other managers requires a
// separate confirmation. So does deleting objects that will be recreated. If the user says no, confirm returns errBack.
func (w *walk) confirm(d deed, p *engine.Plan) (allowed steps.ApplyOptions, err error) {
	n := w.sayPlan(p, false)
	thing := "change"
	if d.undo {
		thing = "resource"
	}
	command := w.command(d)
	if err := w.yes(fmt.Sprintf("%s %s?", d.verb, these(n, thing)), command, p); err != nil || d.undo {
		return allowed, err
	}
	if items := p.Conflicts(); len(items) > 0 {
		w.out.say("These fields are set by another tool or manually. After yes, carrick manages them. " + steps.AppliedAgain)
		for _, it := range items {
			w.item(it, false)
		}
		if err := w.yes("Take over fields of "+listed(model.Managers(items))+"?", command+" --take-over", p); err != nil {
			return allowed, err
		}
		allowed.TakeOver = true
	}
	if p.Has(steps.Replace) {
		w.out.say("These objects cannot be changed in place. Yes deletes and recreates them.")
		for _, it := range p.Of(steps.Replace) {
			w.item(it, false)
		}
		if err := w.yes("Delete and recreate?", command+" --replace", p); err != nil {
			return allowed, err
		}
		allowed.Replace = true
	}
	return allowed, nil
}

// yes asks for a confirmation. For no, which is the default, it returns errBack. p is the plan to confirm, or nil.
func (w *walk) yes(what, instead string, p *engine.Plan) error {
	for {
		text, err := w.ask(question{
			prompt: what + " [y/N]",
			help: func() {
				w.out.say("y is yes. Enter, n and b are no, and change nothing.")
				if p != nil {
					w.out.say("d reads each change line by line.")
				}
			},
			instead: instead,
		})
		if err != nil {
			return err
		}
		switch answer := strings.ToLower(strings.TrimSpace(text)); {
		case answer == "y" || answer == "yes":
			return nil
		case answer == "" || answer == "n" || answer == "no":
			return errBack
		case p != nil && (answer == "d" || answer == "diff"):
			w.sayPlan(p, true)
		default:
			w.out.sentence("%s is neither y nor n", quoted(text))
		}
	}
}
