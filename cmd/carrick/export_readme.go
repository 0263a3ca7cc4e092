package main

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"carrick/cluster"
	"carrick/steps"
)

// exportReadme says what to do with an export, in the order of the guide. It
// holds no time, so that the same export is the same bytes.
func exportReadme(ctx context.Context, s *steps.Session, e *steps.Export, resources map[steps.Side][]string) string {
	var b strings.Builder
	g, link := s.Guide(), s.Link()
	file := link.Name() + ".yaml"
	if link.Path != "" {
		file = filepath.Base(link.Path)
	}
	fmt.Fprintf(&b, "%s, link %s: what carrick would make, for those who apply it with other tools.\n", g.Title, link.Name())
	fmt.Fprintf(&b, "Nothing in it carries carrick's marks, so carrick undo does not take it back.\n")
	for _, side := range steps.Sides {
		if len(resources[side]) > 0 {
			fmt.Fprintf(&b, "\nThe %s:\n  %s apply --server-side -k %s\n", g.Sides[side].Name, s.Kubectl(ctx, side), side)
		}
		if absent := s.End(side).Absent; absent != "" {
			fmt.Fprintf(&b, "\nThe %s: nothing, because %s.\n", g.Sides[side].Name, oneLine(cluster.Clean(absent)))
		}
	}
	fmt.Fprintf(&b, "\nThen, with the link file at hand:\n  carrick check %s\n\nIn the order of the guide:\n", file)
	step := ""
	for _, act := range e.Actions {
		if act.Step != step {
			step = act.Step
			fmt.Fprintf(&b, "\n%s\n", g.Step(step).Title)
		}
		fmt.Fprintf(&b, "  %s: %s\n", g.Sides[act.Side].Name, act.Title)
		for _, line := range exportLines(act, file) {
			fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(cluster.Clean(line), "\n", "\n      "))
		}
	}
	return b.String()
}

// exportLines are what is to be known of one action.
func exportLines(act steps.ExportedAction, file string) []string {
	again := fmt.Sprintf("carrick apply %s --step %s", file, act.Step)
	var out []string
	if act.Pending != "" {
		out = append(out, "not known yet: "+act.Pending, "export again then, or: "+again)
	}
	manifest := path.Join(string(act.Side), act.Action+".yaml")
	for _, t := range act.Things {
		switch {
		case t.Object != nil && len(out) > 0 && out[len(out)-1] == manifest:
		case t.Object != nil:
			out = append(out, manifest)
		case t.Path != "":
			line := exportPath(act.Side, t.Path)
			if t.Mode != 0 {
				line += fmt.Sprintf("  goes to /%s, mode %04o", t.Path, t.Mode)
			}
			out = append(out, line)
		case t.Left != "":
			out = append(out, "secret, left out: "+t.Left, "made by: "+again)
		case t.Hand != "":
			out = append(out, "by hand: "+t.Hand, "or: "+again)
		}
	}
	return out
}
