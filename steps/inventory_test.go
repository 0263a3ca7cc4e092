package steps

import (
	"testing"

	"k8s.io/client-go/rest"

	"carrick/cluster"
)

// What could not be written is not taken for written by the next try of the same run.
func TestAnInventoryThatCannotBeWrittenIsReadAnew(t *testing.T) {
	t.Parallel()
	c, err := cluster.New(&rest.Config{Host: "http://127.0.0.1:1"}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	env := Env{Cluster: c, Link: "l", Action: "a", inv: &inventoryCache{inv: &inventory{uid: "u", actions: map[string][]entry{}}}}
	item := Item{Verb: Create, entry: &entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "c", Created: true}}
	if err := enterPlanned(t.Context(), env, []Item{item}, nil, nil); err == nil {
		t.Fatal("it was written, to nobody")
	}
	if env.inv.inv != nil {
		t.Errorf("it is taken for written: %+v", env.inv.inv.actions)
	}
}
