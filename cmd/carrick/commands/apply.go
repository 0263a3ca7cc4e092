package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/ui/model"
)

func (a *app) apply() *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use: "apply LINK", Short: "Create everything that the link describes", Args: a.needLink,
		Long: "Shows the plan, asks for confirmation, and applies the plan step by step. After each step it\nwaits for the " +
			"step's checks. A second run changes nothing.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runApply(cmd.Context(), args[0], f) },
	}
	a.addChangeFlags(cmd, &f)
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "also list the objects that stay unchanged")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show the plan")
	cmd.Flags().BoolVar(&f.takeOver, "take-over", false, "take over fields that another manager owns")
	cmd.Flags().BoolVar(&f.replaces, "replace", false, "delete and recreate objects that cannot be changed in place")
	return cmd
}

func (a *app) runApply(ctx context.Context, path string, f changeFlags) error {
	if err := errors.Join(f.valid(f.dryRun), a.secrets.needYes(f.yes || f.dryRun)); err != nil {
		return err
	}
	a.attended = isTerminalStream(a.in) && isTerminalStream(a.err)
	s, p, err := a.plan(ctx, path, f, false)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := a.showPlan(s, p, f, f.dryRun); err != nil || p.Empty() || f.dryRun {
		return err
	}
	if err := refuse(ctx, s, p, f); err != nil {
		return err
	}
	if err := a.recordable(); err != nil {
		return err
	}
	if err := a.confirm(f.yes, "Apply these changes?"); err != nil {
		return err
	}
	outliveReaders()
	run, say := model.NewRun(p), a.progress(s)
	var mu sync.Mutex
	err = s.Apply(ctx, p, steps.ApplyOptions{TakeOver: f.takeOver, Replace: f.replaces}, func(e steps.Event) {
		mu.Lock()
		defer mu.Unlock()
		run.Heard(e)
		say(e)
	})
	if err != nil {
		return err
	}
	run.Succeeded()
	a.tellApplied(ctx, s, run.Changed)
	return nil
}

// tellApplied prints how much an apply has changed, and the verdicts after that.
func (a *app) tellApplied(ctx context.Context, s *engine.Session, changes int) {
	board, _ := s.Look(ctx, s.Guide().Cells())
	if ctx.Err() != nil {
		return
	}
	n := board.Count("")
	text := "applied " + steps.Plural(changes, "change")
	if n.Green() && n.Of(engine.Later)+n.Of(engine.Warning) == 0 {
		text += ", all green: " + n.String()
	} else {
		text += fmt.Sprintf(
			": %s; %s check %s --failed lists the checks that need attention", n, a.name, steps.Quoted(s.Link().Path),
		)
	}
	fmt.Fprintln(a.err, a.printer().Dots(text))
}

// PlanApply returns the plan that apply --yes would execute. If apply would refuse the plan, PlanApply returns the
// error.
func PlanApply(ctx context.Context, s *engine.Session, takeOver bool) (*engine.Plan, error) {
	a, f := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}, changeFlags{yes: true, takeOver: takeOver}
	p, err := a.planWith(ctx, s, f, false)
	if err != nil {
		return nil, err
	}
	return p, refuse(ctx, s, p, f)
}

// refuse returns an error if the plan must not be applied: permissions are missing, other managers own some fields, or
// objects would be replaced.
func refuse(ctx context.Context, s *engine.Session, p *engine.Plan, f changeFlags) error {
	lacking, err := s.MissingPermissions(ctx, p)
	if err != nil {
		return err
	}
	if err := missingPermissions(s, lacking, "nothing was changed"); err != nil {
		return err
	}
	if c := p.Conflicts(); len(c) > 0 && !f.takeOver {
		if c[0].Conflicts[0].Manager == action.ByHand {
			return exit.Usagef(
				"nothing was changed: %s was changed manually since carrick wrote it; --take-over overwrites it; to leave it "+
					"out, select other steps with --step",
				c[0].What,
			)
		}
		return exit.Usagef(
			"nothing was changed: field %s of %s is managed by %q; --take-over takes it over", c[0].Conflicts[0].Field,
			c[0].What,
			c[0].Conflicts[0].Manager,
		)
	}
	if p.Has(steps.Replace) && !f.replaces {
		return exit.Usagef(
			"nothing was changed: some objects cannot be changed in place; --replace deletes and recreates them",
		)
	}
	return nil
}
