package reference

import (
	"fmt"
	"io"

	"carrick/cmd/carrick/plain"
	"carrick/steps"
)

// PrintGuide prints a complete guide: its steps, and the questions, actions and checks of each.
func PrintGuide(w io.Writer, g *steps.Guide) {
	fmt.Fprintf(w, "%s: %s\n%s\nIn place of %s\n", g.Name, g.Title, plain.Hanging(g.About, ""), g.Page)
	for i := range g.Steps {
		s := &g.Steps[i]
		fmt.Fprintf(w, "\n%d %s (%s)\n%s\n", i+1, s.Title, s.Name, plain.Hanging(s.Why, "  "))
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

// whom returns the guide's name of a side.
func whom(g *steps.Guide, on steps.Side) string {
	if on == steps.Both {
		return "both"
	}
	return g.Sides[on].Name
}
