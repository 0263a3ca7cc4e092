package ui

import (
	"strings"

	"carrick/cluster"
	"carrick/steps"
)

// lackingPanel shows the rights that are missing, and what would grant them.
func (a *app) lackingPanel(plan *steps.Plan, lacking steps.Lacking) screen {
	name := "carrick-" + a.live.session.Link().Name()
	grants := func() string {
		var parts []string
		for _, side := range steps.Sides {
			if lack, missing := lacking[side]; missing {
				parts = append(parts, steps.Grant(name, lack.Needed, plan.NewNamespaces(side)...))
			}
		}
		return strings.Join(parts, "---\n")
	}
	p := a.pager("Rights are missing", func(w int) []string {
		out := wrap("Nothing was changed. An admin of that cluster can apply this and bind it to you.", w)
		for _, side := range steps.Sides {
			lack, missing := lacking[side]
			if !missing {
				continue
			}
			out = append(out, "", a.t.title.Render(a.live.session.Guide().Sides[side].Name)+"  "+oneLine(a.live.session.End(side).Name))
			for _, r := range together(lack.Missing) {
				out = append(out, hang("  "+a.t.bad.Render("✗")+" ", wrap(oneLine(r.String()), max(1, w-4)))...)
			}
			if lack.Partly {
				out = append(out, wrap("What more it takes can be told once these are there.", w)...)
			}
			out = append(out, "")
			for _, l := range manyLines(steps.Grant(name, lack.Needed, plan.NewNamespaces(side)...)) {
				out = append(out, "    "+l)
			}
		}
		return out
	})
	p.copy = grants
	return p
}

// together are rights with all verbs on a kind in one: "get, create, patch
// roles".
func together(list []cluster.Decision) []cluster.Right {
	var out []cluster.Right
	at := map[cluster.Right]int{}
	for _, d := range list {
		r := d.Right
		verb := r.Verb
		r.Verb, r.Name = "", ""
		i, ok := at[r]
		if !ok {
			i = len(out)
			at[r] = i
			out = append(out, r)
		}
		if out[i].Verb != "" {
			verb = out[i].Verb + ", " + verb
		}
		out[i].Verb = verb
	}
	return out
}
