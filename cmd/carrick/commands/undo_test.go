package commands

import (
	"testing"

	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/engine"
)

// An undo that keeps files exits with PartWay only if it changes something. A second undo exits with 0.
func TestTheExitCodeOfAnUndoThatLeavesFiles(t *testing.T) {
	left := steps.Item{Verb: steps.Leave, What: "/etc/x", Left: true}
	gone := steps.Item{Verb: steps.Delete, What: "/etc/y"}
	for name, tc := range map[string]struct {
		items   []steps.Item
		pending string
		want    int
	}{
		"left alone":           {items: []steps.Item{left}},
		"deleted and left":     {items: []steps.Item{gone, left}, want: exit.PartWay},
		"deleted":              {items: []steps.Item{gone}},
		"left, a side is away": {items: []steps.Item{left}, pending: "it does not answer"},
	} {
		p := &engine.Plan{Undo: true, Actions: []engine.Planned{{Change: steps.Change{Items: tc.items}}}}
		if tc.pending != "" {
			p.Actions = append(p.Actions, engine.Planned{Pending: tc.pending})
		}
		if got := exit.Code(t.Context(), leftFiles(p)); got != tc.want {
			t.Errorf("%s: exit code %d, not %d", name, got, tc.want)
		}
	}
}
