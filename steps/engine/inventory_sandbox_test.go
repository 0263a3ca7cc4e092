package engine_test

import (
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

// noInventory deletes the inventory of a link, as if an earlier version of carrick had applied it.
func noInventory(t *testing.T, box *clustertest.Sandbox, link string) {
	t.Helper()
	box.Run(t, clustertest.Remote, "", "delete", "clusterrole", "carrick:"+link)
}

func inventories(t *testing.T, box *clustertest.Sandbox, link string) string {
	t.Helper()
	return box.Run(t, clustertest.Remote, "", "get", "clusterrole", "carrick:"+link, "-o", "name", "--ignore-not-found")
}

// itemsOf returns the items of a plan with that verb.
func itemsOf(t *testing.T, p *engine.Plan, verb steps.Verb) string {
	t.Helper()
	var out []string
	for _, it := range p.Of(verb) {
		out = append(out, it.What)
	}
	return strings.Join(out, "\n")
}

func undoPlan(t *testing.T, s *engine.Session, found ...string) *engine.Plan {
	t.Helper()
	p, err := s.PlanUndo(t.Context(), engine.Scope{Found: found})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Without the inventory, marks are not trusted: undo lists what it finds, and deletes only objects that the user names.
func TestUndoWithoutAnInventoryDeletesOnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	const ns = "no-inventory"
	s, box := changed(t, "lost", ns, twoKinds)
	stepstest.Apply(t, s)
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", ns, "--wait=false")
	noInventory(t, box, "lost")
	if p := undoPlan(t, s); !p.Empty() || itemsOf(t, p, steps.Leave) != "Namespace "+ns+"\nRole "+ns+"/r" {
		t.Errorf("undo would do\n%s", items(p))
	}
	p := undoPlan(t, s, "Role "+ns+"/r")
	if itemsOf(t, p, steps.Delete) != "Role "+ns+"/r" {
		t.Errorf("undo of what is named would do\n%s", items(p))
	}
	if err := s.Undo(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if left := box.Run(t, clustertest.Remote, "", "-n", ns, "get", "role", "-o", "name"); left != "" {
		t.Errorf("left is %s", left)
	}
	if left := box.Run(t, clustertest.Remote, "", "get", "namespace", ns, "-o", "name"); left == "" {
		t.Error("the namespace, which was not named, is gone")
	}
}

// The next apply enters objects of an earlier version into the inventory, and says so. An undo then deletes them.
func TestASetUpOfAnEarlierVersionIsEntered(t *testing.T) {
	t.Parallel()
	const ns = "earlier-version"
	s, box := takenOver(t, "earlier", ns)
	noInventory(t, box, "earlier")
	old := `{"metadata":{"annotations":{"carrick/before":"{\"data\":{\"a.b\":\"theirs\"},\"metadata\":{\"labels\":{\"app.kubernetes.io/name\":\"theirs\"},\"finalizers\":[\"example.org/forged\"]}}"}}}`
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "patch", "configmap", "c", "--type=merge",
		"--field-manager=carrick.earlier.make", "-p", old,
	)
	p := stepstest.Apply(t, s)
	if last := p.Actions[0].Change.Items; len(last) != 2 || last[1].Verb != steps.Update ||
		!strings.Contains(
			last[1].Note, "ConfigMap "+ns+"/c (existed before) (restores data.a.b, metadata.labels.app.kubernetes.io/name)",
		) {
		t.Errorf("the plan does not say what is entered: %+v", last)
	}
	if again, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !again.Empty() {
		t.Errorf("a second apply would do\n%s\n%v", items(again), err)
	}
	stepstest.Undo(t, s)
	got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "configmap", "c", "-o", `jsonpath={.metadata.labels} {.data}`,
	)
	if want := `{"app.kubernetes.io/name":"theirs"} {"a.b":"theirs"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if left := inventories(t, box, "earlier"); left != "" {
		t.Errorf("left is %s", left)
	}
}

// A user who can write an object can write its annotations. So undo restores the values in the inventory, and the plan
// shows them.
func TestOldValuesComeFromTheInventory(t *testing.T) {
	t.Parallel()
	const ns = "old-values"
	s, box := takenOver(t, "values", ns)
	forged := `{"metadata":{"annotations":{"carrick/created-by":"values","carrick/before":"{\"data\":{\"a.b\":\"forged\"}}"}}}`
	box.Run(t, clustertest.Remote, "", "-n", ns, "patch", "configmap", "c", "--type=merge", "-p", forged)
	p := undoPlan(t, s)
	it := p.Actions[0].Change.Items[0]
	if it.Verb != steps.Release || !strings.Contains(it.Diff, "+  a.b: theirs") || strings.Contains(it.Diff, "forged\n+") {
		t.Errorf("%s %s: %s\n%s", it.Verb, it.What, it.Note, it.Diff)
	}
	if err := s.Undo(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "configmap", "c", "-o", `jsonpath={.data.a\.b}`,
	); got != "theirs" {
		t.Errorf("the value is %q", got)
	}
}

// If another user recreated an object under the same name, it is not this link's object, whatever its marks say.
func TestUndoLeavesAnObjectThatWasRecreated(t *testing.T) {
	t.Parallel()
	const ns = "recreated"
	space(t, ns)
	s, box := changed(t, "anew", ns, oneRole)
	stepstest.Apply(t, s)
	role := box.Run(t, clustertest.Remote, "", "-n", ns, "get", "role", "r", "-o", "yaml")
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "role", "r")
	var lines []string
	for _, l := range strings.Split(role, "\n") {
		if !strings.Contains(l, "uid:") && !strings.Contains(l, "resourceVersion:") {
			lines = append(lines, l)
		}
	}
	box.Run(
		t, clustertest.Remote, strings.Join(lines, "\n"), "apply", "--server-side", "--field-manager=carrick.anew.make", "-f",
		"-",
	)
	stepstest.Undo(t, s)
	if left := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "role", "r", "-o", "name",
	); !strings.Contains(left, "role") {
		t.Errorf("another object of that name is gone: %q", left)
	}
}

// A run that is killed between its writes leaves entries without a UID. For these, an object with the mark and the same
// name counts.
func TestAnInventoryThatWasNotCompletedIsEnough(t *testing.T) {
	t.Parallel()
	const ns = "not-completed"
	s, box := changed(t, "cut", ns, twoKinds)
	stepstest.Apply(t, s)
	pending := `[{"apiVersion":"v1","kind":"Namespace","name":"not-completed","created":true},{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","namespace":"not-completed","name":"r","created":true}]`
	box.Run(
		t, clustertest.Remote, "", "annotate", "--overwrite", "clusterrole", "carrick:cut", "carrick/inventory.make="+pending,
	)
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || itemsOf(t, p, steps.Update) != "ClusterRole carrick:cut" {
		t.Errorf("apply would do\n%s\n%v", items(p), err)
	}
	completed := func() bool {
		return !strings.Contains(
			box.Run(
				t, clustertest.Remote, "", "get", "clusterrole", "carrick:cut", "-o",
				`jsonpath={.metadata.annotations.carrick/inventory\.make}`,
			),
			`"r","created"`,
		)
	}
	if completed() {
		t.Fatal("it is complete: this proves nothing")
	}
	stepstest.Apply(t, s)
	if p, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !p.Empty() || !completed() {
		t.Errorf("after a second apply a third would do\n%s\n%v", items(p), err)
	}
	box.Run(
		t, clustertest.Remote, "", "annotate", "--overwrite", "clusterrole", "carrick:cut", "carrick/inventory.make="+pending,
	)
	stepstest.Undo(t, s)
	if left := box.Run(t, clustertest.Remote, "", "get", "namespace", ns, "-o", "name", "--ignore-not-found") +
		inventories(t, box, "cut"); left != "" {
		t.Errorf("left is %s", left)
	}
}

// A user who can write an object can add another link's mark to it. The mark is ignored if that link's inventory does
// not contain the object. A link without an inventory is named, and the undo continues.
func TestAForgedMarkOfAnotherLinkKeepsNothing(t *testing.T) {
	t.Parallel()
	const ns = "forged-link"
	space(t, ns)
	s, box := changed(t, "honest", ns, oneRole+"---"+labelled)
	other, _ := changed(t, "bystander", ns, strings.Replace(labelled, "name: c,", "name: other,", 1))
	stepstest.Apply(t, other)
	stepstest.Apply(t, s)
	box.Run(t, clustertest.Remote, "", "-n", ns, "label", "role", "r", "carrick/link.bystander=make")
	box.Run(t, clustertest.Remote, "", "-n", ns, "label", "configmap", "c", "carrick/link.nobody=make")
	p := undoPlan(t, s)
	if itemsOf(t, p, steps.Delete) != "Role "+ns+"/r" || len(p.Unentered()) != 1 ||
		!strings.Contains(p.Unentered()[0].Note, "link nobody, which has no inventory") {
		t.Fatalf("undo would do\n%s", items(p))
	}
	if err := s.Undo(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if p = undoPlan(t, s, "ConfigMap "+ns+"/c"); itemsOf(t, p, steps.Delete) != "ConfigMap "+ns+
		"/c\nClusterRole carrick:honest" {
		t.Fatalf("undo of what is named would do\n%s", items(p))
	}
	if err := s.Undo(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	stepstest.Undo(t, other)
	if left := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "role,configmap", "-l", "carrick/link.honest", "-o", "name",
	); left != "" {
		t.Errorf("left is %s", left)
	}
}

// An interrupted undo has deleted some objects. The next undo deletes the rest, including the inventory.
func TestTheInventoryGoesAfterAnInterruptedUndo(t *testing.T) {
	t.Parallel()
	const ns = "interrupted-undo"
	s, box := changed(t, "begun", ns, twoKinds)
	stepstest.Apply(t, s)
	box.Run(t, clustertest.Remote, "", "delete", "namespace", ns)
	stepstest.Undo(t, s)
	if left := inventories(t, box, "begun"); left != "" {
		t.Errorf("left is %s", left)
	}
}

// An object named with --found does not keep its namespace in the same undo.
func TestANamespaceGoesWithWhatIsNamed(t *testing.T) {
	t.Parallel()
	const ns = "goes-with-it"
	s, box := changed(t, "namer", ns, twoKinds)
	stepstest.Apply(t, s)
	box.Run(t, clustertest.Remote, "", "-n", ns, "label", "role", "r", "carrick/link.nobody=make")
	if p := undoPlan(t, s); !p.Empty() || !p.Leaves() {
		t.Errorf("undo would do\n%s", items(p))
	}
	if err := s.Undo(t.Context(), undoPlan(t, s, "Role "+ns+"/r"), nil); err != nil {
		t.Fatal(err)
	}
	if left := box.Run(t, clustertest.Remote, "", "get", "namespace", ns, "-o", "name", "--ignore-not-found") +
		inventories(t, box, "namer"); left != "" {
		t.Errorf("left is %s", left)
	}
}
