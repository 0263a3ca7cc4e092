package inventory

import (
	"slices"
	"sync"
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps"
)

// Two concurrent runs of a link lose no entries: the later write is based on the earlier one.
func TestTwoRunsWriteOneInventory(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	const link = "two-runs"
	box.Cleanup(t, clustertest.Remote, "delete", "clusterrole", Prefix+link)
	run := func() (steps.Env, *Inventory) {
		env := steps.Env{
			Cluster: box.Open(t, clustertest.Remote, cluster.Options{}), Link: link, Action: "make",
			Runtime: steps.Runtime{Cache: &sync.Map{}},
		}
		inv, err := Readable(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		return env, inv
	}
	item := func(name string) steps.Item {
		return steps.Item{
			Verb:  steps.Create,
			Entry: &steps.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: name, Created: true},
		}
	}
	enters := func(env steps.Env, name string) {
		t.Helper()
		if err := EnterAll(t.Context(), env, []steps.Item{item(name)}, nil, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	has := func(want ...string) {
		t.Helper()
		_, inv := run()
		var got []string
		for _, e := range inv.Actions["make"] {
			got = append(got, e.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the inventory has %v, want %v", got, want)
		}
	}
	first, _ := run()
	second, _ := run()
	enters(first, "a")
	enters(second, "b") // the second did not know of the inventory
	has("a", "b")
	enters(first, "c") // nor the first of what the second entered
	has("a", "b", "c")

	third, inv := run()
	enters(first, "d")
	if changed, err := inv.Settle(t.Context(), third, "make", nil); err != nil || !changed { // none of them exists
		t.Fatal(changed, err)
	}
	if err := inv.Write(t.Context(), third, nil, "make"); err != nil {
		t.Fatal(err)
	}
	has("d")
	if err := SetNote(t.Context(), third, "make", "7", nil); err != nil {
		t.Fatal(err)
	}
	enters(first, "e")
	if note, err := Note(t.Context(), first, "make"); err != nil || note != "7" {
		t.Errorf("the note is %q, %v", note, err)
	}
	has("d", "e")
	if err := third.Cluster.DeleteVersion(t.Context(), ClusterRoles, "", Prefix+link, inv.UID, inv.Version); err == nil {
		t.Error("an inventory that another run has written into is deleted")
	}
}
