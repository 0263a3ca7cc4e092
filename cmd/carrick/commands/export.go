package commands

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/export"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
)

func (a *app) export() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "export LINK DIR", Short: "Export everything that apply would create, for other tools",
		Long: `Writes everything that apply would create, for GitOps tools and for kubectl:
  DIR/local, DIR/remote  a kustomization each, with rendered charts
  DIR/files              values of charts, bodies of requests, files of hosts
  DIR/README.txt         commands for everything else, and the omitted secrets
The export contains no secret, and changes nothing in a cluster. Exit code 5: some
values are not known yet, so the export is incomplete.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return exit.Usagef("name one link file and one directory: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runExport(cmd.Context(), args[0], args[1], force)
		},
	}
	a.secrets.add(cmd.Flags())
	cmd.Flags().BoolVar(
		&force, "force", false, "write to a directory that is not empty: replaces local, remote, files and README.txt there",
	)
	return cmd
}

func (a *app) runExport(ctx context.Context, link, dir string, force bool) error {
	if err := export.CheckFolder(dir, force); err != nil {
		return err
	}
	s, err := a.open(ctx, link, cluster.Options{Once: true})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := a.signers(ctx, s, true, false); err != nil {
		return err
	}
	if missing := s.Missing(ctx); len(missing) > 0 {
		return s.WhatIsMissing(ctx, missing)
	}
	e, err := s.Export(ctx)
	if err != nil {
		return err
	}
	tree, err := export.New(ctx, s, e, dir)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := export.Write(dir, tree, force); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		fmt.Fprintln(a.out, filepath.Join(dir, filepath.FromSlash(name)))
	}
	return a.sayLeft(s, e)
}

// sayLeft prints what the export does not contain. README.txt explains how to do those parts manually.
func (a *app) sayLeft(s *engine.Session, e *engine.Export) error {
	pending := false
	for _, act := range e.Actions {
		role := s.Guide().Sides[act.Side].Name
		say := func(how, what string) {
			fmt.Fprintf(a.err, "%s: %s: %s (step %s)\n", role, how, plain.OneLine(clean.Text(what)), act.Step)
		}
		if act.Pending != "" {
			say("not known yet", act.Title+": "+act.Pending)
			pending = true
		}
		for _, t := range act.Things {
			if t.Left != "" {
				say("secret left out", t.Left)
			}
		}
		if export.ByHand(act) {
			say("manually, see README.txt", act.Title)
		}
	}
	for _, side := range steps.Sides {
		if absent := s.Endpoint(side).Absent; absent != "" {
			fmt.Fprintf(a.err, "%s: nothing is exported for this side: %s\n", s.Guide().Sides[side].Name, absent)
			pending = true
		}
	}
	if pending {
		return exit.Verdict(exit.Unknown)
	}
	return nil
}
