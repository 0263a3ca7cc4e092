package steps

import (
	"slices"
	"testing"

	"carrick/cluster"
)

// What goes first where the other side is not in the link goes in its place otherwise.
func TestUndoOrder(t *testing.T) {
	g := &Guide{Undo: []string{"a", "b", "c"}, UndoAlone: []string{"c"}}
	var jobs []job
	for _, name := range []string{"first", "c", "b", "a"} {
		jobs = append(jobs, job{action: &Action{Name: name}, side: Local})
	}
	here := End{Cluster: &cluster.Cluster{}}
	for _, c := range []struct {
		ends map[Side]End
		want []string
	}{
		{map[Side]End{Local: here, Remote: here}, []string{"a", "b", "c", "first"}},
		{map[Side]End{Local: here, Remote: {Absent: "it is gone"}}, []string{"c", "a", "b", "first"}},
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
