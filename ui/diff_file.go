package ui

import (
	"fmt"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
)

// planText formats a complete plan as plain text. It contains every object with its diff.
func (a *app) planText(plan *engine.Plan) []string {
	guide := a.live.Guide()
	var out []string
	for _, side := range steps.Sides {
		for _, act := range plan.Actions {
			if act.Side != side {
				continue
			}
			out = append(out, fmt.Sprintf("## %s: %s", guide.Sides[side].Name, oneLine(act.Title)))
			if act.Pending != "" {
				out = append(out, "# not known yet: "+oneLine(act.Pending))
			}
			for _, it := range act.Change.Items {
				out = append(out, itemText(it)...)
			}
			out = append(out, "")
		}
	}
	if len(out) == 0 {
		return []string{"# nothing would change"}
	}
	return out
}

func itemText(it steps.Item) []string {
	line := fmt.Sprintf("# %s %s", it.Verb, oneLine(it.What))
	if it.Note != "" {
		line += " (" + oneLine(it.Note) + ")"
	}
	out := []string{line}
	for _, c := range it.Conflicts {
		out = append(out, fmt.Sprintf("#   %s is set by %s", oneLine(c.Field), oneLine(c.Manager)))
	}
	if it.Verb.Changes() && it.Diff != "" {
		out = append(out, manyLines(it.Diff)...)
	}
	return out
}

// planHead returns the header of a saved plan.
func (a *app) planHead(plan *engine.Plan) []string {
	s := a.live.Session
	guide, link := s.Guide(), s.Link()
	what := "Changes that carrick would make"
	if plan.Undo {
		what = "Changes that carrick would undo"
	}
	by := ""
	if a.o.Version != "" {
		by = ", by carrick " + a.o.Version
	}
	out := []string{
		"# " + what,
		"#",
		fmt.Sprintf("# link      %s (%s)", oneLine(link.Name()), oneLine(link.Path)),
		fmt.Sprintf("# guide     %s (%s)", guide.Title, guide.Name),
		fmt.Sprintf("# created   %s%s", a.now().Format(time.RFC3339), by),
	}
	for _, side := range steps.Sides {
		line := fmt.Sprintf("# %-9s %s", guide.Sides[side].Name, oneLine(s.Endpoint(side).Name))
		if v := a.live.Liveness(side).Version; v != "" {
			line += ", Kubernetes " + oneLine(v)
		}
		out = append(out, line)
	}
	for _, side := range steps.Sides {
		if t := amount(plan, side); t != "" {
			out = append(out, fmt.Sprintf("# %s: %s", guide.Sides[side].Name, t))
		}
	}
	return append(out,
		"# total: "+orNothing(amount(plan, "")),
		"#",
		"# This file is for reading only. It is not a manifest: carrick apply plans again. Values",
		"# of Secrets are masked: (hidden).",
		"",
	)
}

func orNothing(s string) string {
	if strings.TrimSpace(s) == "" {
		return "nothing"
	}
	return s
}
