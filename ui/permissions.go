package ui

import (
	"strings"

	"carrick/steps"
	"carrick/steps/engine"
)

func (a *app) lackingPanel(lacking engine.MissingPermissions) screen {
	name := "carrick-" + a.live.Session.Link().Name()
	grants := func() string {
		var parts []string
		for _, side := range steps.Sides {
			if lack, missing := lacking[side]; missing {
				parts = append(parts, lack.Grant(name))
			}
		}
		return strings.Join(parts, "---\n")
	}
	p := a.pager("Missing permissions", func(w int) []string {
		out := wrap("Nothing was changed. An admin of that cluster can apply these manifests and bind the role to you.", w)
		for _, side := range steps.Sides {
			lack, missing := lacking[side]
			if !missing {
				continue
			}
			out = append(
				out, "", a.t.title.Render(a.live.Guide().Sides[side].Name)+"  "+oneLine(a.live.Session.Endpoint(side).Name),
			)
			for _, r := range lack.Words() {
				out = append(out, hang("  "+a.t.bad.Render("✗")+" ", wrap(oneLine(r), max(1, w-4)))...)
			}
			if lack.Partly {
				out = append(out, wrap("Once these permissions are granted, carrick can check for others.", w)...)
			}
			out = append(out, "")
			for _, l := range manyLines(lack.Grant(name)) {
				out = append(out, "    "+l)
			}
		}
		return out
	})
	p.copy = grants
	return p
}
