package engine

import (
	"slices"
	"testing"

	"carrick/cluster"
	"carrick/steps"
)

// Actions in UndoAlone come first only if the link has no other side.
func TestUndoOrder(t *testing.T) {
	g := &steps.Guide{Undo: []string{"a", "b", "c"}, UndoAlone: []string{"c"}}
	var jobs []job
	for _, name := range []string{"first", "c", "b", "a"} {
		jobs = append(jobs, job{action: &steps.Action{Name: name}, side: steps.Local})
	}
	here := Endpoint{Cluster: &cluster.Cluster{}}
	for _, c := range []struct {
		ends map[steps.Side]Endpoint
		want []string
	}{
		{map[steps.Side]Endpoint{steps.Local: here, steps.Remote: here}, []string{"a", "b", "c", "first"}},
		{map[steps.Side]Endpoint{steps.Local: here, steps.Remote: {Absent: "it is gone"}}, []string{"c", "a", "b", "first"}},
	} {
		var got []string
		for _, j := range (&Session{guide: g, ends: c.ends}).undoOrder(jobs) {
			got = append(got, j.action.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}
