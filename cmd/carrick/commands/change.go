package commands

import (
	"bufio"
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/format"
	"carrick/steps"
	"carrick/steps/engine"
)

// changeFlags are the flags of the commands that change things.
type changeFlags struct {
	steps, found                    []string
	side, output                    string
	yes, dryRun, takeOver, replaces bool
}

func (a *app) addChangeFlags(cmd *cobra.Command, f *changeFlags) {
	a.secrets.add(cmd.Flags())
	cmd.Flags().StringSliceVar(&f.steps, "step", nil, "only these `steps`, separated by commas")
	cmd.Flags().StringVar(&f.side, "side", "", "one `side` only: local, remote, or the guide's word")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "`format` of the plan: table, json or yaml")
}

// valid rejects an invalid -o, and -o for a plan that is not only shown.
func (f *changeFlags) valid(shown bool) error {
	if err := format.Valid(f.output, format.ByCommand["diff"]...); err != nil {
		return err
	}
	if f.output != "table" && !shown {
		return exit.Usagef("-o %s requires --dry-run", f.output)
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
			return engine.Scope{}, exit.Usagef("guide %s has no step %q; see carrick guides %s", g.Name, name, g.Name)
		}
	}
	return engine.Scope{Steps: f.steps, Side: side, Found: f.found}, nil
}

// plan opens a link and plans. The session is open unless plan returns an error.
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
	if err := s.PeerFileFits(ctx); err != nil {
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

// sidesKnown refuses changes if the link does not name a side, unless --side selects the other one.
func sidesKnown(s *engine.Session, only steps.Side) error {
	for _, side := range steps.Sides {
		end, role := s.Endpoint(side), s.Guide().Sides[side]
		if end.PeerFile != nil && only == side {
			return exit.Usagef(
				"%s: you have no credentials for it; its admin runs carrick apply LINK --side %s", end.Absent, role.Flag(),
			)
		}
		if end.Absent != "" && end.PeerFile == nil && !role.Optional && (only == "" || only == side) {
			return exit.Usagef(
				"%s; add it to the link file (%s: %s), or use --side %s", end.Absent, side, role.Example(),
				s.Guide().Sides[side.Peer()].Flag(),
			)
		}
	}
	return nil
}

// unsealed refuses to plan with an encrypted facts file that was not decrypted. Actions would wait for its values
// indefinitely.
func unsealed(ctx context.Context, s *engine.Session) error {
	for _, side := range steps.Sides {
		if h := s.Endpoint(side).PeerFile; h != nil {
			if err := h.Sealed(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// missingPermissions returns an error with the missing permissions on the first side that has any, and manifests that
// grant them; nil: nothing is missing.
func missingPermissions(s *engine.Session, lacking engine.MissingPermissions, so string) error {
	for _, side := range steps.Sides {
		lack, missing := lacking[side]
		if !missing {
			continue
		}
		more := ""
		if lack.Partly {
			more = " (once these are granted, carrick can check for others)"
		}
		return fmt.Errorf("%s: missing permissions on the %s%s:\n  %s\nThis would grant them:\n\n%s",
			so, s.Guide().Sides[side].Name, more, strings.Join(lack.Words(), "\n  "), lack.Grant("carrick-"+s.Link().Name()))
	}
	return nil
}

// whyMissing returns an error with the missing answers, or with the missing permissions if carrick could discover the
// answers with them.
func whyMissing(ctx context.Context, s *engine.Session, missing []steps.Question) error {
	err := error(s.WhatIsMissing(ctx, missing))
	unread, askErr := s.Unread(ctx)
	if askErr != nil {
		return err
	}
	if rights := missingPermissions(s, unread, err.Error()+"; carrick cannot discover it"); rights != nil {
		return rights
	}
	return err
}

// recordable refuses changes that cannot be recorded in the audit log.
func (a *app) recordable() error {
	if a.unaudited == nil {
		a.unaudited = a.audit.Room()
	}
	if a.unaudited == nil {
		return nil
	}
	return exit.Usagef(
		"nothing was changed: the audit log cannot be written (%w); set XDG_STATE_HOME to a writable folder with free space",
		a.unaudited,
	)
}

// outliveReaders ignores SIGPIPE, so that a closed reader of the output does not end carrick in the middle of a change.
func outliveReaders() { signal.Ignore(syscall.SIGPIPE) }

func (a *app) progress(s *engine.Session) steps.Progress {
	return func(e steps.Event) {
		text := clean.Text(e.Text)
		if e.Verb != "" {
			fmt.Fprintf(a.out, "%s: %s\n", s.Guide().Sides[e.Side].Name, text)
			return
		}
		fmt.Fprintln(a.err, text)
	}
}

// confirm asks on the terminal. Without a terminal and --yes it returns an error. The end of the input never means yes.
func (a *app) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !isTerminalStream(a.in) {
		return exit.Usagef("there is no terminal to confirm on: add --yes, or run it on a terminal")
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	line, err := bufio.NewReader(a.in).ReadString('\n')
	switch answer := strings.ToLower(strings.TrimSpace(line)); {
	case err == nil && (answer == "y" || answer == "yes"):
		return nil
	default:
		return exit.Usagef("not confirmed: nothing was changed")
	}
}

// showPlan writes a plan as a table, or as one document.
func (a *app) showPlan(s *engine.Session, p *engine.Plan, output string, diff bool) error {
	if output == "table" {
		out := a.err // a plan before a question is not data
		if diff {
			out = a.out
		}
		format.Plan(out, s, p, diff)
		return nil
	}
	return format.Document(a.out, output, s.NewPlanReport(p, time.Now()))
}
