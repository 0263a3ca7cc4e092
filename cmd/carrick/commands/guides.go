package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/format"
	"carrick/cmd/carrick/plain"
	"carrick/cmd/carrick/reference"
	"carrick/steps"
)

func (a *app) listGuides() *cobra.Command {
	output := "text"
	cmd := &cobra.Command{
		Use: "guides [GUIDE]", Short: "List the guides, their steps, questions, actions and checks",
		Long: "Lists the guides. With the name of a guide it lists the steps, with their questions, actions and\nchecks. " +
			"Use these names with --step, --only and --skip. Names of questions are the keys of answers in a link file.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("one guide at a time: %s", cmd.UseLine())
			}
			return format.Valid(output, format.ByCommand["guides"]...)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.printGuides(output)
			}
			g, err := steps.FindGuide(a.Guides, args[0])
			if err != nil {
				return exit.AsUsage(err)
			}
			if output != "text" {
				return format.Document(a.out, output, reference.Guide(g))
			}
			reference.PrintGuide(a.out, g)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "`format`: text, json or yaml")
	return cmd
}

func (a *app) printGuides(output string) error {
	if output != "text" {
		return format.Document(a.out, output, reference.Guides(a.Guides))
	}
	for _, g := range a.Guides {
		fmt.Fprintf(a.out, "%-12s %s\n%s\n", g.Name, g.Title, plain.Hanging(g.About, strings.Repeat(" ", 13)))
	}
	return nil
}
