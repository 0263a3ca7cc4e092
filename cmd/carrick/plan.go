package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
)

// changeFlags are of the commands that change things.
type changeFlags struct {
	steps, found                    []string
	side, output                    string
	yes, dryRun, takeOver, replaces bool
}

func (a *app) addChangeFlags(cmd *cobra.Command, f *changeFlags) {
	a.secrets.add(cmd.Flags())
	cmd.Flags().StringSliceVar(&f.steps, "step", nil, "only these `steps`, with commas")
	cmd.Flags().StringVar(&f.side, "side", "", "one `side` only: local, remote, or the guide's word")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "`format` of the plan: table, json or yaml")
}

// valid refuses what -o can't be, and -o of what is not shown alone.
func (f *changeFlags) valid(shown bool) error {
	if err := format(f.output, outputs["diff"]...); err != nil {
		return err
	}
	if f.output != "table" && !shown {
		return usage("-o %s is for a plan that is only shown: add --dry-run", f.output)
	}
	return nil
}

func (f *changeFlags) scope(g *steps.Guide) (engine.Scope, error) {
	side, err := sideFlag(f.side, g)
	if err != nil {
		return engine.Scope{}, err
	}
	for _, name := range f.steps {
		if g.Step(name) == nil {
			return engine.Scope{}, usage("guide %s has no step %q; see carrick guides %s", g.Name, name, g.Name)
		}
	}
	return engine.Scope{Steps: f.steps, Side: side, Found: f.found}, nil
}

func (a *app) diff() *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use: "diff LINK", Short: "Show what apply would change", Args: a.needLink,
		Long: "Shows what apply would change, by a dry run on both servers. Secrets are masked.\n" +
			"Exit code 0: nothing; 3: something; 5: nothing, of what is known now.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.valid(true); err != nil {
				return err
			}
			f.dryRun = true
			s, p, err := a.plan(cmd.Context(), args[0], f, false)
			if err != nil {
				return err
			}
			defer s.Close()
			switch err := a.showPlan(s, p, f.output, true); {
			case err != nil, p.Empty():
				return err
			case !p.Changes():
				return verdict(exitUnknown)
			}
			return verdict(exitFailed)
		},
	}
	a.addChangeFlags(cmd, &f)
	return cmd
}

func (a *app) apply() *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use: "apply LINK", Short: "Make what the link asks for", Args: a.needLink,
		Long: "Plans, shows the plan, asks, and does it step by step: after each step it waits for the\nstep's checks. Doing it twice changes nothing.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runApply(cmd.Context(), args[0], f) },
	}
	a.addChangeFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show the plan")
	cmd.Flags().BoolVar(&f.takeOver, "take-over", false, "take fields that another manager owns")
	cmd.Flags().BoolVar(&f.replaces, "replace", false, "delete and make anew what can't be changed in place")
	return cmd
}

func (a *app) undo() *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use: "undo LINK", Short: "Take back what this link made", Args: a.needLink,
		Long: "Shows what this link created, asks, and deletes it. What existed before, or is used by another\nlink, stays. It goes by the link's inventory: the ClusterRole carrick:NAME on each cluster. Objects\nthat only carry the link's mark are listed, and deleted only if --found names them.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runUndo(cmd.Context(), args[0], f) },
	}
	a.addChangeFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would be taken back")
	cmd.Flags().StringArrayVar(&f.found, "found", nil, "also undo this `object`, by its mark, as the plan names it: \"Role renku/renku\"")
	return cmd
}

// plan opens a link and plans. The session is open unless there is an error.
func (a *app) plan(ctx context.Context, path string, f changeFlags, undo bool) (*engine.Session, *engine.Plan, error) {
	s, err := a.open(ctx, path, cluster.Options{})
	if err != nil {
		return nil, nil, err
	}
	p, err := a.planWith(ctx, s, f, undo)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, p, nil
}

func (a *app) planWith(ctx context.Context, s *engine.Session, f changeFlags, undo bool) (*engine.Plan, error) {
	scope, err := f.scope(s.Guide())
	if err != nil {
		return nil, err
	}
	if err := sidesKnown(s, scope.Side); err != nil {
		return nil, err
	}
	if err := s.HandedFits(ctx); err != nil {
		return nil, err
	}
	if err := a.signers(ctx, s, !f.dryRun, f.yes); err != nil {
		return nil, err
	}
	if undo {
		return s.PlanUndo(ctx, scope)
	}
	if err := unsealed(ctx, s); err != nil {
		return nil, err
	}
	if missing := s.Missing(ctx, scope.Steps...); len(missing) > 0 {
		return nil, whyMissing(ctx, s, missing)
	}
	return s.Plan(ctx, scope)
}

// sidesKnown refuses to change anything for a side that the link does not
// name, unless the other side alone was asked for.
func sidesKnown(s *engine.Session, only steps.Side) error {
	for _, side := range steps.Sides {
		end, role := s.End(side), s.Guide().Sides[side]
		if end.Handed != nil && only == side {
			return usage("%s: nothing can be done there from here; its admin runs carrick apply LINK --side %s", end.Absent, role.Flag())
		}
		if end.Absent != "" && end.Handed == nil && !role.Optional && (only == "" || only == side) {
			return usage("%s; add it to the link file (%s: %s), or use --side %s", end.Absent, side, role.Example(), s.Guide().Sides[side.Peer()].Flag())
		}
	}
	return nil
}

// unsealed refuses to plan with a file of facts whose seal was not opened: what is in
// it would be waited for in vain.
func unsealed(ctx context.Context, s *engine.Session) error {
	for _, side := range steps.Sides {
		if h := s.End(side).Handed; h != nil {
			if err := h.Sealed(ctx); err != nil {
				return err
			}
		}
	}
	return nil
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
	if err := a.showPlan(s, p, f.output, f.dryRun); err != nil || p.Empty() || f.dryRun {
		return err
	}
	if err := a.refuse(ctx, s, p, f); err != nil {
		return err
	}
	if err := a.recordable(); err != nil {
		return err
	}
	if err := a.confirm(f.yes, "Do this?"); err != nil {
		return err
	}
	outliveReaders()
	return s.Apply(ctx, p, steps.ApplyOptions{TakeOver: f.takeOver, Replace: f.replaces}, a.progress(s))
}

// refuse stops before anything is written: rights that are missing, fields of
// others, things that would have to be replaced.
func (a *app) refuse(ctx context.Context, s *engine.Session, p *engine.Plan, f changeFlags) error {
	lacking, err := s.Lacking(ctx, p)
	if err != nil {
		return err
	}
	if err := missingRights(s, lacking, "nothing was changed"); err != nil {
		return err
	}
	if c := p.Conflicts(); len(c) > 0 && !f.takeOver {
		if c[0].Conflicts[0].Manager == action.ByHand {
			return usage("nothing was changed: %s was changed by hand since carrick wrote it; --take-over writes over it, and --step NAME leaves it out", c[0].What)
		}
		return usage("nothing was changed: field %s of %s belongs to %q; --take-over takes it", c[0].Conflicts[0].Field, c[0].What, c[0].Conflicts[0].Manager)
	}
	if p.Has(steps.Replace) && !f.replaces {
		return usage("nothing was changed: something can't be changed in place; --replace deletes it and makes it anew")
	}
	return nil
}

// missingRights says what is missing on the first side on which something is, and
// what would grant it; nil: nothing is missing.
func missingRights(s *engine.Session, lacking engine.Lacking, so string) error {
	for _, side := range steps.Sides {
		lack, missing := lacking[side]
		if !missing {
			continue
		}
		more := ""
		if lack.Partly {
			more = " (what more it takes can be told once these are there)"
		}
		return fmt.Errorf("%s: on the %s rights are missing%s:\n  %s\nThis would grant them:\n\n%s",
			so, s.Guide().Sides[side].Name, more, strings.Join(lack.Words(), "\n  "), lack.Grant("carrick-"+s.Link().Name()))
	}
	return nil
}

// whyMissing says which answers are missing, or which rights, where carrick could
// find the answers out if it might look.
func whyMissing(ctx context.Context, s *engine.Session, missing []steps.Question) error {
	err := error(s.WhatIsMissing(ctx, missing))
	unread, askErr := s.Unread(ctx)
	if askErr != nil {
		return err
	}
	if rights := missingRights(s, unread, err.Error()+"; and carrick can't find it out"); rights != nil {
		return rights
	}
	return err
}

// recordable refuses to change what could not be recorded.
func (a *app) recordable() error {
	if a.unaudited == nil {
		a.unaudited = a.audit.Room()
	}
	if a.unaudited == nil {
		return nil
	}
	return usage("nothing was changed: what is changed is recorded, and that can't be done (%w); set XDG_STATE_HOME to a folder of yours with some room in it", a.unaudited)
}

func (a *app) runUndo(ctx context.Context, path string, f changeFlags) error {
	if err := errors.Join(f.valid(f.dryRun), a.secrets.needYes(f.yes || f.dryRun)); err != nil {
		return err
	}
	a.attended = isTerminalStream(a.in) && isTerminalStream(a.err)
	s, p, err := a.plan(ctx, path, f, true)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := a.showPlan(s, p, f.output, f.dryRun); err != nil || f.dryRun {
		return err
	}
	if p.Empty() {
		return nil
	}
	if err := a.recordable(); err != nil {
		return err
	}
	if err := a.confirm(f.yes, "Take this back?"); err != nil {
		return err
	}
	outliveReaders()
	if err := s.Undo(ctx, p, a.progress(s)); err != nil {
		return err
	}
	return leftFiles(p)
}

// outliveReaders keeps a reader of the output that leaves from ending carrick
// in the middle of a change.
func outliveReaders() { signal.Ignore(syscall.SIGPIPE) }

func (a *app) progress(s *engine.Session) steps.Progress {
	return func(e steps.Event) {
		text := cluster.Clean(e.Text)
		if e.Verb != "" {
			fmt.Fprintf(a.out, "%s: %s\n", s.Guide().Sides[e.Side].Name, text)
			return
		}
		fmt.Fprintln(a.err, text)
	}
}

// showPlan writes a plan as a table, or as one document.
func (a *app) showPlan(s *engine.Session, p *engine.Plan, output string, diff bool) error {
	if output == "table" {
		a.printPlan(s, p, diff)
		return nil
	}
	return printDocument(a.out, output, s.NewPlanReport(p, time.Now()))
}

// printPlan lists what changes on standard error, except for diff itself,
// whose data it is.
func (a *app) printPlan(s *engine.Session, p *engine.Plan, diff bool) {
	out := a.err
	if diff {
		out = a.out
	}
	step := ""
	for _, act := range p.Actions {
		if act.Step != step {
			step = act.Step
			fmt.Fprintf(out, "%s\n", s.Guide().Step(step).Title)
		}
		role := s.Guide().Sides[act.Side].Name
		if act.Pending != "" {
			fmt.Fprintf(out, "  %s: %s: %s (%s)\n", role, act.Title, map[bool]string{false: "known later", true: "left"}[p.Undo], cluster.Clean(act.Pending))
		}
		for _, it := range act.Change.Items {
			if diff && act.Pending != "" { // what it would do at most
				continue
			}
			note := ""
			if it.Note != "" {
				note = "  (" + oneLine(cluster.Clean(it.Note)) + ")"
			}
			fmt.Fprintf(out, "  %s: %-7s %s%s\n", role, it.Verb, cluster.Clean(it.What), note)
			for _, c := range it.Conflicts {
				fmt.Fprintf(out, "    field %s belongs to %q\n", cluster.Clean(c.Field), cluster.Clean(c.Manager))
			}
			if diff && it.Verb.Changes() && it.Diff != "" {
				fmt.Fprint(out, indent(cluster.Clean(it.Diff)))
			}
		}
	}
	switch held := len(p.Held()) > 0; {
	case held:
		fmt.Fprintf(out, "What others need is left. When they need it no longer: carrick undo %s\n", steps.Quoted(s.Link().Path))
	case p.Empty() && len(p.Unentered()) > 0:
		fmt.Fprintln(out, "Nothing is undone: the inventory of this link does not have what is listed above.")
	case p.Empty() && len(p.Left()) > 0:
		fmt.Fprintln(out, "Nothing is undone: carrick leaves the files listed above. "+
			"Delete them, or restore what was there before (or, where listed, remove those lines), then run undo again.")
	case p.Empty() && p.Undo:
		fmt.Fprintln(out, "Nothing of this link is left.")
	case p.Empty():
		fmt.Fprintln(out, "Nothing to change: everything is as the link asks.")
	}
}

func indent(s string) string {
	return "      " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n      ") + "\n"
}

// confirm asks on the terminal. No terminal and no --yes is an error; the end
// of the input never means yes.
func (a *app) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !isTerminalStream(a.in) {
		return usage("there is nobody to ask: add --yes, or run it on a terminal")
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	line, err := bufio.NewReader(a.in).ReadString('\n')
	switch answer := strings.ToLower(strings.TrimSpace(line)); {
	case err == nil && (answer == "y" || answer == "yes"):
		return nil
	default:
		return usage("not confirmed: nothing was changed")
	}
}
