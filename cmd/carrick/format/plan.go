package format

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"carrick/cluster/clean"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
)

// PlanOptions select what Plan prints.
type PlanOptions struct {
	Diff bool // with the diffs of the changes
	All  bool // with objects that stay unchanged; otherwise Plan only counts them
}

// Plan prints the changes in a plan.
func Plan(out io.Writer, s *engine.Session, p *engine.Plan, o PlanOptions) {
	step, same, diff := "", 0, o.Diff
	for _, act := range p.Actions {
		if !o.All && !p.Undo {
			all := len(act.Change.Items)
			act.Change.Items = slices.DeleteFunc(slices.Clone(act.Change.Items), unchanged)
			same += all - len(act.Change.Items)
			if len(act.Change.Items) == 0 && act.Pending == "" {
				continue
			}
		}
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
	if same > 0 && !p.Empty() {
		fmt.Fprintf(out, "unchanged: %s; --verbose lists them\n", steps.Plural(same, "object"))
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

// unchanged reports whether an apply leaves an object as it is, and nothing is to say about it.
func unchanged(it steps.Item) bool {
	return it.Verb == steps.Leave && it.Note == "" && len(it.Conflicts) == 0
}

func indent(s string) string {
	return "      " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n      ") + "\n"
}
