package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carrick/steps"
)

func (a *app) explain() *cobra.Command {
	return &cobra.Command{
		Use: "explain [GUIDE/]CHECK", Short: "What a check looks at, why, and where upstream says so",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("one check at a time: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.explainAll()
			}
			return a.explainOne(args[0])
		},
	}
}

func (a *app) explainAll() error {
	for _, g := range a.guides {
		for i := range g.Steps {
			for _, c := range g.Steps[i].Checks {
				fmt.Fprintf(a.out, "%-40s %s\n", g.Name+"/"+c.Name, c.Title)
			}
		}
	}
	return nil
}

func (a *app) explainOne(name string) error {
	guide, check, qualified := strings.Cut(name, "/")
	if !qualified {
		guide, check = "", name
	}
	check, _, _ = strings.Cut(check, "@") // an id of a report is fine, too
	found := false
	for _, g := range a.guides {
		if guide != "" && g.Name != guide {
			continue
		}
		if c, step := g.Check(check); c != nil {
			explainCheck(a.out, g, step, c)
			found = true
		}
	}
	if !found {
		return usage("no check is called %q; %s explain lists them", name, a.name)
	}
	return nil
}

func explainCheck(w io.Writer, g *steps.Guide, step *steps.Step, c *steps.Check) {
	fmt.Fprintf(w, "%s/%s: %s\n\n", g.Name, c.Name, c.Title)
	row := func(word, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s"+format+"\n", append([]any{word}, args...)...)
	}
	row("Why", "%s", c.Why)
	where := "both sides"
	if c.On != steps.Both {
		where = "the " + g.Sides[c.On].Name + " " + string(g.Sides[c.On].Kind)
	}
	if c.From != "" {
		where += ", looked at from: " + c.From
	}
	row("On", "%s", where)
	row("Step", "%s (%s)", step.Title, step.Name)
	if c.NotChecked != "" {
		row("Not", "checked by carrick: %s", c.NotChecked)
	}
	if len(c.Needs) > 0 {
		row("Needs", "%s", strings.Join(c.Needs, ", "))
	}
	if c.Within > 0 {
		row("Waits", "at most %s", c.Within)
	}
	var mended []string
	for _, side := range steps.Sides {
		act, by := g.Mending(c, side)
		if act == nil || !c.On.Covers(side) || slices.Contains(mended, act.Name) {
			continue
		}
		row(map[bool]string{true: "Mended"}[mended == nil], "by action %s: %s (carrick apply LINK --step %s)", act.Name, act.Title, by.Name)
		mended = append(mended, act.Name)
	}
	for i, s := range c.See {
		row(map[bool]string{true: "See", false: ""}[i == 0], "%s", s)
	}
	if len(c.See) == 0 {
		row("See", "%s", g.Page)
	}
}

func (a *app) listGuides() *cobra.Command {
	return &cobra.Command{
		Use: "guides [GUIDE]", Short: "The guides, their steps, questions and checks",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("one guide at a time: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, g := range a.guides {
					fmt.Fprintf(a.out, "%-12s %s\n             %s\n", g.Name, g.Title, g.About)
				}
				return nil
			}
			g, err := steps.FindGuide(a.guides, args[0])
			if err != nil {
				return usageError{err}
			}
			describeGuide(a.out, g)
			return nil
		},
	}
}

func describeGuide(w io.Writer, g *steps.Guide) {
	fmt.Fprintf(w, "%s: %s\n%s\nIn place of %s\n", g.Name, g.Title, g.About, g.Page)
	for i := range g.Steps {
		s := &g.Steps[i]
		fmt.Fprintf(w, "\n%d %s (%s)\n  %s\n", i+1, s.Title, s.Name, s.Why)
		for _, q := range s.Ask {
			kind := string(q.Kind)
			if q.Many {
				kind = "list of " + kind
			}
			if q.Opt {
				kind += ", may stay empty"
			}
			fmt.Fprintf(w, "  asks    %-28s %s (%s)\n", q.Key, q.Title, kind)
		}
		for _, act := range s.Actions {
			fmt.Fprintf(w, "  does    %-28s %s (%s)\n", act.Name, act.Title, g.Sides[act.On].Name)
		}
		for _, c := range s.Checks {
			on := "both"
			if c.On != steps.Both {
				on = g.Sides[c.On].Name
			}
			fmt.Fprintf(w, "  checks  %-28s %s (%s)\n", c.Name, c.Title, on)
		}
	}
}
