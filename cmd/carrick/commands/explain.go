package commands

import (
	"strings"

	"github.com/spf13/cobra"

	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/format"
	"carrick/cmd/carrick/reference"
)

func (a *app) explain() *cobra.Command {
	output := "text"
	cmd := &cobra.Command{
		Use: "explain [GUIDE|STEP|CHECK]", Short: "What a check looks at, why, and where upstream says so",
		Long: "Explains a check: what it asserts, where it looks, what goes wrong if it does not hold,\nwhat makes it " +
			"hold, what depends on it, and where upstream says so. It asks no cluster.\nThe name is GUIDE, GUIDE/STEP, " +
			"GUIDE/CHECK, an id of a report, or a step's or check's name alone.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("one check at a time: %s", cmd.UseLine())
			}
			return format.Valid(output, format.ByCommand["explain"]...)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := reference.Pick(a.Guides, a.name, strings.Join(args, ""))
			if err != nil {
				return err
			}
			if output != "text" {
				return format.Document(a.out, output, found.Document())
			}
			found.Print(a.out)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "`format`: text, json or yaml")
	return cmd
}
