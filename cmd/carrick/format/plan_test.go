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
	Plan(&out, s, &engine.Plan{Undo: true, Actions: []engine.Planned{act}}, false)
	got := out.String()
	if strings.Contains(got, "Nothing of this link is left") || !strings.Contains(got, left.What+"  ("+left.Note+")") ||
		!strings.Contains(got, "carrick keeps the files listed above. Delete them, or restore their old content") {
		t.Error(got)
	}
}
