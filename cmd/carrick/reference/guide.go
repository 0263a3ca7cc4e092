package reference

import (
	"fmt"
	"io"

	"carrick/cmd/carrick/plain"
	"carrick/steps"
)

// PrintGuide prints a guide with the questions, actions and checks of each step.
func PrintGuide(w io.Writer, g *steps.Guide) {
	fmt.Fprintf(w, "%s: %s\n%s\nAutomates %s\n", g.Name, g.Title, plain.Hanging(g.About, ""), g.Page)
	for i := range g.Steps {
		s := &g.Steps[i]
		fmt.Fprintf(w, "\n%d %s (%s)\n%s\n", i+1, s.Title, s.Name, plain.Hanging(s.Why, "  "))
		for _, q := range s.Ask {
			kind := string(q.Kind)
			if q.Many {
				kind = "list of " + kind
			}
			if q.Opt {
				kind += ", optional"
			}
			if q.Secret {
				kind += ", secret"
			}
			fmt.Fprintf(w, "  question %-28s %s (%s)\n", q.Key, q.Title, kind)
		}
		for _, act := range s.Actions {
			fmt.Fprintf(w, "  action   %-28s %s (%s)\n", act.Name, act.Title, whom(g, act.On))
		}
		for _, c := range s.Checks {
			fmt.Fprintf(w, "  check    %-28s %s (%s)\n", c.Name, c.Title, whom(g, c.On))
		}
	}
}

// whom returns the guide's name for a side.
func whom(g *steps.Guide, on steps.Side) string {
	if on == steps.Both {
		return "both"
	}
	return g.Sides[on].Name
}
