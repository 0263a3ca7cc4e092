package commands

import (
	"github.com/spf13/cobra"

	"carrick/cmd/carrick/exit"
)

func (a *app) diff() *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use: "diff LINK", Short: "Show what apply would change", Args: a.needLink,
		Long: "Shows what apply would change, from a dry run on both servers. Secrets are masked.\nExit code 0: no " +
			"changes; 3: changes; 5: no changes known\nyet, but some can only be planned later.",
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
			switch err := a.showPlan(s, p, f, true); {
			case err != nil, p.Empty():
				return err
			case !p.Changes():
				return exit.Verdict(exit.Unknown)
			}
			return exit.Verdict(exit.Failed)
		},
	}
	a.addChangeFlags(cmd, &f)
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "also list the objects that stay unchanged")
	return cmd
}
