package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"carrick/steps"
)

func (a *app) listGuides() *cobra.Command {
	output := "text"
	cmd := &cobra.Command{
		Use: "guides [GUIDE]", Short: "The guides, their steps, questions, actions and checks",
		Long: "Lists the guides; with the name of one its steps, and of each step what it asks, does and checks.\nThe names are those that --step, --only and --skip take, and the keys of answers in a link file.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("one guide at a time: %s", cmd.UseLine())
			}
			return format(output, outputs["guides"]...)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.printGuides(output)
			}
			g, err := steps.FindGuide(a.guides, args[0])
			if err != nil {
				return usageError{err}
			}
			if output != "text" {
				return printDocument(a.out, output, guideOnly{apiVersion, "Guide", describe(g, true)})
			}
			describeGuide(a.out, g)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "`format`: text, json or yaml")
	return cmd
}

func (a *app) printGuides(output string) error {
	list := guideList{APIVersion: apiVersion, Kind: "GuideList"}
	for _, g := range a.guides {
		list.Guides = append(list.Guides, describe(g, false))
		if output == "text" {
			fmt.Fprintf(a.out, "%-12s %s\n%s\n", g.Name, g.Title, hanging(g.About, strings.Repeat(" ", 13)))
		}
	}
	if output == "text" {
		return nil
	}
	return printDocument(a.out, output, list)
}

func describeGuide(w io.Writer, g *steps.Guide) {
	fmt.Fprintf(w, "%s: %s\n%s\nIn place of %s\n", g.Name, g.Title, hanging(g.About, ""), g.Page)
	for i := range g.Steps {
		s := &g.Steps[i]
		fmt.Fprintf(w, "\n%d %s (%s)\n%s\n", i+1, s.Title, s.Name, hanging(s.Why, "  "))
		for _, q := range s.Ask {
			kind := string(q.Kind)
			if q.Many {
				kind = "list of " + kind
			}
			if q.Opt {
				kind += ", may stay empty"
			}
			if q.Secret {
				kind += ", secret"
			}
			fmt.Fprintf(w, "  asks    %-28s %s (%s)\n", q.Key, q.Title, kind)
		}
		for _, act := range s.Actions {
			fmt.Fprintf(w, "  does    %-28s %s (%s)\n", act.Name, act.Title, whom(g, act.On))
		}
		for _, c := range s.Checks {
			fmt.Fprintf(w, "  checks  %-28s %s (%s)\n", c.Name, c.Title, whom(g, c.On))
		}
	}
}

// whom is the guide's name of a side.
func whom(g *steps.Guide, on steps.Side) string {
	if on == steps.Both {
		return "both"
	}
	return g.Sides[on].Name
}
