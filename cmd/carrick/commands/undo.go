package commands

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"carrick/cmd/carrick/exit"
	"carrick/steps/engine"
)

func (a *app) undo() *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use: "undo LINK", Short: "Delete what this link created", Args: a.needLink,
		Long: "Shows what this link created, asks, and deletes it. What existed before, or is used by another\nlink, is " +
			"kept. It reads the link's inventory, the ClusterRole carrick:NAME on each cluster. Objects\nthat only have the " +
			"link's labels are listed, and deleted only if --found names them.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runUndo(cmd.Context(), args[0], f) },
	}
	a.addChangeFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show the plan")
	cmd.Flags().StringArrayVar(
		&f.found, "found", nil, "also undo this `object`, found by its labels, as the plan names it: \"Role renku/renku\"",
	)
	return cmd
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
	if err := a.confirm(f.yes, "Undo this?"); err != nil {
		return err
	}
	outliveReaders()
	if err := s.Undo(ctx, p, a.progress(s)); err != nil {
		return err
	}
	return leftFiles(p)
}

// leftFiles returns the verdict PartWay if an undo changed something and kept files that the link wrote. The plan and
// the run have listed these files.
func leftFiles(p *engine.Plan) error {
	if p.Changes() && len(p.Left()) > 0 {
		return exit.Verdict(exit.PartWay)
	}
	return nil
}
