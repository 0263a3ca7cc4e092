package main

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
	a := &app{err: &out}
	g := ondemand.Guide()
	left := steps.Item{
		Verb: steps.Leave, What: "/etc/ood/hooks/cluster-ca.crt", Note: "was changed by another user since carrick wrote it", Left: true,
	}
	act := engine.Planned{Step: "kubectl", Action: "ca-file", Side: steps.Local, Change: steps.Change{Items: []steps.Item{left}}}
	s := engine.NewSession(engine.SessionOptions{Guide: g, Link: linkfile.New(g.Name, "x")})
	a.printPlan(s, &engine.Plan{Undo: true, Actions: []engine.Planned{act}}, false)
	got := out.String()
	if strings.Contains(got, "Nothing of this link is left") || !strings.Contains(got, left.What+"  ("+left.Note+")") ||
		!strings.Contains(got, "carrick leaves the files listed above. Delete them, or restore what was there before") {
		t.Error(got)
	}
}

// An undo that leaves files has come part of the way only if it changes something: run again, it ends with 0.
func TestTheExitCodeOfAnUndoThatLeavesFiles(t *testing.T) {
	left := steps.Item{Verb: steps.Leave, What: "/etc/x", Left: true}
	gone := steps.Item{Verb: steps.Delete, What: "/etc/y"}
	for name, tc := range map[string]struct {
		items   []steps.Item
		pending string
		want    int
	}{
		"left alone":           {items: []steps.Item{left}},
		"deleted and left":     {items: []steps.Item{gone, left}, want: exitPartWay},
		"deleted":              {items: []steps.Item{gone}},
		"left, a side is away": {items: []steps.Item{left}, pending: "it does not answer"},
	} {
		p := &engine.Plan{Undo: true, Actions: []engine.Planned{{Change: steps.Change{Items: tc.items}}}}
		if tc.pending != "" {
			p.Actions = append(p.Actions, engine.Planned{Pending: tc.pending})
		}
		if got := exitCode(t.Context(), leftFiles(p)); got != tc.want {
			t.Errorf("%s: exit code %d, not %d", name, got, tc.want)
		}
	}
}
