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
	"carrick/cluster/nearest"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/format"
	"carrick/steps"
	"carrick/steps/engine"
)

type changeFlags struct {
	steps, found                    []string
	side, output                    string
	yes, dryRun, takeOver, replaces bool
	verbose                         bool // also list what stays unchanged
}

func (a *app) addChangeFlags(cmd *cobra.Command, f *changeFlags) {
	a.secrets.add(cmd.Flags())
	cmd.Flags().StringSliceVar(&f.steps, "step", nil, "only these `steps`, separated by commas")
	cmd.Flags().StringVar(&f.side, "side", "", "one `side` only: local, remote, or the guide's name of the side")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "`format` of the plan: table, json or yaml")
}

// valid rejects an invalid -o. If the plan is applied, it rejects every -o except table.
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
			names, _ := g.Names()
			return engine.Scope{}, exit.Usagef(
				"guide %s has no step %q%s; see carrick guides %s", g.Name, name, nearest.Hint(name, names), g.Name,
			)
		}
	}
	return engine.Scope{Steps: f.steps, Side: side, Found: f.found}, nil
}

// plan opens a link and plans its changes. The caller must close the session unless plan returns an error.
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

// sidesKnown returns an error if the link has no endpoint for a side that would change.
func sidesKnown(s *engine.Session, only steps.Side) error {
	for _, side := range steps.Sides {
		end, role := s.Endpoint(side), s.Guide().Sides[side]
		if end.PeerFile != nil && only == side {
			return exit.Usagef(
				"%s: you have no credentials for this side; its admin runs: carrick apply LINK --side %s", end.Absent, role.Flag(),
			)
		}
		if end.Absent != "" && end.PeerFile == nil && !role.Optional && (only == "" || only == side) {
			return exit.Usagef(
				"%s; add this side to the link file (%s: %s), or use --side %s", end.Absent, side, role.Example(),
				s.Guide().Sides[side.Peer()].Flag(),
			)
		}
	}
	return nil
}

// unsealed returns an error if a facts file is still encrypted. Without this check, actions would wait indefinitely for
// values from that file.
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

// missingPermissions returns an error for the first side with missing permissions. The error includes manifests that
// grant them. It returns nil if no permissions are missing.
func missingPermissions(s *engine.Session, lacking engine.MissingPermissions, so string) error {
	for _, side := range steps.Sides {
		lack, missing := lacking[side]
		if !missing {
			continue
		}
		more := ""
		if lack.Partly {
			more = " (once these permissions are granted, carrick can check for others)"
		}
		return fmt.Errorf("%s: missing permissions on the %s%s:\n  %s\nThese manifests grant them:\n\n%s",
			so, s.Guide().Sides[side].Name, more, strings.Join(lack.Words(), "\n  "), lack.Grant("carrick-"+s.Link().Name()))
	}
	return nil
}

// whyMissing returns an error for missing answers. If carrick only needs more permissions to discover them, the error
// lists these permissions.
func whyMissing(ctx context.Context, s *engine.Session, missing []steps.Question) error {
	err := error(s.WhatIsMissing(ctx, missing))
	unread, askErr := s.Unread(ctx)
	if askErr != nil {
		return err
	}
	if rights := missingPermissions(s, unread, err.Error()+"; carrick cannot discover the value"); rights != nil {
		return rights
	}
	return err
}

// recordable returns an error if the audit log cannot be written.
func (a *app) recordable() error {
	if a.unaudited == nil {
		a.unaudited = a.audit.Room()
	}
	if a.unaudited == nil {
		return nil
	}
	return exit.Usagef(
		"nothing was changed: the audit log cannot be written (%w); set XDG_STATE_HOME to a writable directory "+
			"with free space",
		a.unaudited,
	)
}

// outliveReaders ignores SIGPIPE. Otherwise carrick could be killed in the middle of a change when the reader of its
// output exits.
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

// confirm asks a yes-or-no question on the terminal. Without a terminal, it returns an error unless yes is set. End of
// input means no.
func (a *app) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !isTerminalStream(a.in) {
		return exit.Usagef("cannot ask for confirmation without a terminal: add --yes, or run carrick in a terminal")
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

func (a *app) showPlan(s *engine.Session, p *engine.Plan, f changeFlags, diff bool) error {
	if f.output == "table" {
		out := a.err // only a diff goes to standard output
		if diff {
			out = a.out
		}
		format.Plan(out, s, p, format.PlanOptions{Diff: diff, All: f.verbose})
		return nil
	}
	return format.Document(a.out, f.output, s.NewPlanReport(p, time.Now()))
}
