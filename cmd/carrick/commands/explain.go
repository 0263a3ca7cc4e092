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
		Use: "explain [GUIDE|STEP|CHECK]", Short: "Explain a check: what it verifies, why, and its upstream source",
		Long: "Explains a check: what it asserts, on which side, what goes wrong if it fails, what fixes\nit, what depends " +
			"on it, and the upstream source. It contacts no cluster.\nThe name is GUIDE, GUIDE/STEP, GUIDE/CHECK, an ID from " +
			"a report, or only the\nname of a step or check.",
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
