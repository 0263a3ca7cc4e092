package steps

import (
	"slices"
	"sync"
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
)

// Two runs of a link at once lose no entry of each other's: the one that writes later reads first.
func TestTwoRunsWriteOneInventory(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	const link = "two-runs"
	box.Cleanup(t, clustertest.Remote, "delete", "clusterrole", inventoryPrefix+link)
	run := func() (Env, *inventory) {
		env := Env{Cluster: box.Open(t, clustertest.Remote, cluster.Options{}), Link: link, Action: "make", Runtime: Runtime{Cache: &sync.Map{}}}
		inv, err := readableInventory(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		return env, inv
	}
	item := func(name string) Item {
		return Item{Verb: Create, entry: &entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: name, Created: true}}
	}
	enters := func(env Env, name string) {
		t.Helper()
		if err := enterPlanned(t.Context(), env, []Item{item(name)}, nil, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	has := func(want ...string) {
		t.Helper()
		_, inv := run()
		var got []string
		for _, e := range inv.actions["make"] {
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
	if changed, err := inv.settle(t.Context(), third, "make", false); err != nil || !changed { // none of them exists
		t.Fatal(changed, err)
	}
	if err := inv.write(t.Context(), third, nil, "make"); err != nil {
		t.Fatal(err)
	}
	has("d")
	if err := SetNote(t.Context(), third, "make", "7", nil); err != nil {
		t.Fatal(err)
	}
	enters(first, "e")
	if note, err := NoteOf(t.Context(), first, "make"); err != nil || note != "7" {
		t.Errorf("the note is %q, %v", note, err)
	}
	has("d", "e")
	if err := third.Cluster.DeleteVersion(t.Context(), clusterRolesAt, "", inventoryPrefix+link, inv.uid, inv.version); err == nil {
		t.Error("an inventory that another run has written into is deleted")
	}
}
