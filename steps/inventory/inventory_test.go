package inventory

import (
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"carrick/cluster"
	"carrick/steps"
)

// After a failed write, the next attempt of the same run reads the inventory again.
func TestAnInventoryThatCannotBeWrittenIsReadAnew(t *testing.T) {
	t.Parallel()
	c, err := cluster.New(&rest.Config{Host: "http://127.0.0.1:1"}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	env := steps.Env{Cluster: c, Link: "l", Action: "a", Runtime: steps.Runtime{Cache: &sync.Map{}}}
	cacheOf(env).inv = &Inventory{UID: "u", Actions: map[string][]steps.Entry{}}
	item := steps.Item{
		Verb:  steps.Create,
		Entry: &steps.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "c", Created: true},
	}
	if err := EnterAll(t.Context(), env, []steps.Item{item}, nil, nil); err == nil {
		t.Fatal("it was written, to nobody")
	}
	if cacheOf(env).inv != nil {
		t.Errorf("it is taken for written: %+v", cacheOf(env).inv.Actions)
	}
}

// Each of two runs keeps its own changes, and an object that one of them created stays marked as created.
func TestMergeOfTwoRuns(t *testing.T) {
	t.Parallel()
	e := func(name string, uid types.UID, created bool) steps.Entry {
		return steps.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: name, UID: uid, Created: created}
	}
	list := func(all ...steps.Entry) []steps.Entry { return all }
	for name, c := range map[string]struct{ was, ours, theirs, want []steps.Entry }{
		"each adds one": {
			nil, list(e("a", "", true)), list(e("b", "", true)), list(e("a", "", true), e("b", "", true)),
		},
		"theirs is gone": {
			list(e("a", "1", true)), list(e("a", "1", true), e("b", "", true)), nil, list(e("b", "", true)),
		},
		"ours is gone": {
			list(e("a", "1", true)), nil, list(e("a", "1", true), e("b", "", true)), list(e("b", "", true)),
		},
		"ours is gone, theirs is another": {list(e("a", "1", true)), nil, list(e("a", "2", true)), list(e("a", "2", true))},
		"they completed it": {
			list(e("a", "", true)), list(e("a", "", true)), list(e("a", "1", true)), list(e("a", "1", true)),
		},
		"they created it first": {nil, list(e("a", "1", false)), list(e("a", "1", true)), list(e("a", "1", true))},
		"they are about to":     {nil, list(e("a", "1", false)), list(e("a", "", true)), list(e("a", "", true))},
		"another object":        {nil, list(e("a", "2", true)), list(e("a", "1", false)), list(e("a", "2", true))},
	} {
		if got := merge(c.was, c.ours, c.theirs); !slices.EqualFunc(got, c.want, sameEntry) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
