package format

import (
	"fmt"
	"io"
	"strings"

	"carrick/cluster/clean"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
)

// Plan prints the changes in a plan. If diff is true, it also prints their diffs.
func Plan(out io.Writer, s *engine.Session, p *engine.Plan, diff bool) {
	step := ""
	for _, act := range p.Actions {
		if act.Step != step {
			step = act.Step
			fmt.Fprintf(out, "%s\n", s.Guide().Step(step).Title)
		}
		role := s.Guide().Sides[act.Side].Name
		if act.Pending != "" {
			fmt.Fprintf(
				out, "  %s: %s: %s (%s)\n", role, act.Title, map[bool]string{false: "known later", true: "left"}[p.Undo],
				clean.Text(act.Pending),
			)
		}
		for _, it := range act.Change.Items {
			if diff && act.Pending != "" { // the items of a pending action are only an upper bound
				continue
			}
			note := ""
			if it.Note != "" {
				note = "  (" + plain.OneLine(clean.Text(it.Note)) + ")"
			}
			fmt.Fprintf(out, "  %s: %-7s %s%s\n", role, it.Verb, clean.Text(it.What), note)
			for _, c := range it.Conflicts {
				fmt.Fprintf(out, "    field %s is managed by %q\n", clean.Text(c.Field), clean.Text(c.Manager))
			}
			if diff && it.Verb.Changes() && it.Diff != "" {
				fmt.Fprint(out, indent(clean.Text(it.Diff)))
			}
		}
	}
	switch held := len(p.Held()) > 0; {
	case held:
		fmt.Fprintf(
			out, "Objects that others use are kept. When they are no longer used, run: carrick undo %s\n",
			steps.Quoted(s.Link().Path),
		)
	case p.Empty() && len(p.Unentered()) > 0:
		fmt.Fprintln(out, "Nothing is undone: the inventory of this link does not list the objects above.")
	case p.Empty() && len(p.Left()) > 0:
		fmt.Fprintln(
			out,
			"Nothing is undone: carrick keeps the files listed above. Delete them, or restore their old content (or, where "+
				"listed, remove those lines), then run undo again.",
		)
	case p.Empty() && p.Undo:
		fmt.Fprintln(out, "Nothing of this link is left.")
	case p.Empty():
		fmt.Fprintln(out, "Nothing to change: everything is up to date.")
	}
}

func indent(s string) string {
	return "      " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n      ") + "\n"
}
