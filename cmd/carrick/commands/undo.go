package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"carrick/cluster/clean"
	"carrick/cmd/carrick/exit"
	"carrick/steps/engine"
)

func (a *app) undo() *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use: "undo LINK", Short: "Delete what this link created", Args: a.needLink,
		Long: "Shows the objects that this link created, asks for confirmation, and deletes them. It keeps objects\nthat " +
			"existed before or that another link uses. It reads the link's inventory, the ClusterRole\ncarrick:NAME on each " +
			"cluster. It lists objects that have the link's labels but are not in the\ninventory, and deletes them only if " +
			"--found names them.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runUndo(cmd.Context(), args[0], f) },
	}
	a.addChangeFlags(cmd, &f)
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show the plan")
	cmd.Flags().StringArrayVar(
		&f.found, "found", nil,
		"also undo this `object`, which has the link's labels; use its name in the plan: \"Role renku/renku\"",
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
	if err := a.showPlan(s, p, f, f.dryRun); err != nil || f.dryRun {
		return err
	}
	if p.Empty() {
		return nil
	}
	if err := a.recordable(); err != nil {
		return err
	}
	if err := a.confirm(f.yes, "Undo these changes?"); err != nil {
		return err
	}
	outliveReaders()
	if err := s.Undo(ctx, p, a.progress(s)); err != nil {
		return err
	}
	for _, it := range p.ByOthers() {
		fmt.Fprintf(a.out, "kept: %s: %s\n", clean.Text(it.What), clean.Text(it.Note))
	}
	return leftFiles(p)
}

// leftFiles returns the verdict PartWay if an undo changed something but did not delete all files that the link wrote.
// The plan has already listed these files.
func leftFiles(p *engine.Plan) error {
	if p.Changes() && len(p.Left()) > 0 {
		return exit.Verdict(exit.PartWay)
	}
	return nil
}
