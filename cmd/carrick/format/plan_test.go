package format

import (
	"bytes"
	"strings"
	"testing"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/ondemand"
	"carrick/steps/linkfile"
)

func TestAnUndoNamesTheFilesThatItLeaves(t *testing.T) {
	var out bytes.Buffer
	g := ondemand.Guide()
	left := steps.Item{
		Verb: steps.Leave, What: "/etc/ood/hooks/cluster-ca.crt", Note: "was changed by another user since carrick wrote it",
		Left: true,
	}
	act := engine.Planned{
		Step: "kubectl", Action: "ca-file", Side: steps.Local, Change: steps.Change{Items: []steps.Item{left}},
	}
	s := engine.NewSession(engine.SessionOptions{Guide: g, Link: linkfile.New(g.Name, "x")})
	Plan(&out, s, &engine.Plan{Undo: true, Actions: []engine.Planned{act}}, PlanOptions{})
	got := out.String()
	if strings.Contains(got, "Nothing of this link is left") || !strings.Contains(got, left.What+"  ("+left.Note+")") ||
		!strings.Contains(got, "carrick keeps the files listed above. Delete them, or restore their old content") {
		t.Error(got)
	}
}

func TestUnchangedObjectsAreOnlyCounted(t *testing.T) {
	g := ondemand.Guide()
	act := engine.Planned{Step: "kubectl", Action: "ca-file", Side: steps.Local, Change: steps.Change{Items: []steps.Item{
		{Verb: steps.Leave, What: "/etc/ood/same"},
		{Verb: steps.Leave, What: "/etc/ood/noted", Note: "is also used by others"},
		{Verb: steps.Create, What: "/etc/ood/new"},
	}}}
	s := engine.NewSession(engine.SessionOptions{Guide: g, Link: linkfile.New(g.Name, "x")})
	p := &engine.Plan{Actions: []engine.Planned{act}}
	var brief, all bytes.Buffer
	Plan(&brief, s, p, PlanOptions{})
	Plan(&all, s, p, PlanOptions{All: true})
	if got := brief.String(); strings.Contains(got, "same") || !strings.Contains(got, "noted") ||
		!strings.Contains(got, "create  /etc/ood/new") ||
		!strings.Contains(got, "unchanged: 1 object; --verbose lists them") {
		t.Error(got)
	}
	if got := all.String(); !strings.Contains(got, "leave   /etc/ood/same") || strings.Contains(got, "unchanged:") {
		t.Error(got)
	}
}
