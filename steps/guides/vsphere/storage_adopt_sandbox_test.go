package vsphere_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// answersOf returns the effective answers of a link as strings, by question.
func answersOf(t *testing.T, s *engine.Session) map[string]string {
	t.Helper()
	out := map[string]string{}
	for i := range s.Guide().Steps {
		for _, a := range s.Answers(t.Context(), &s.Guide().Steps[i]) {
			if a.Err != nil {
				t.Errorf("%s: %v", a.Question.Key, a.Err)
			}
			if list, many := a.Value.([]string); a.Asked && a.Value != nil && (!many || len(list) > 0) {
				out[a.Question.Key] = fmt.Sprint(a.Value)
			}
		}
	}
	return out
}

// Without the link file, carrick finds an existing setup and adopts the answers that created it.
func TestVerifyStorageIsFoundAgain(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "adopt")
	box := seeded(t, "")
	made := stepstest.Open(
		t, box, vsphere.Guide(), assets, "again", stepstest.Given(t, box, vsphere.Guide(), map[string]any{
			"storage.source": "nfs", "storage.namespace": "trials", "storage.class": "shared",
			"nfs.options": []string{"nfsvers=4.2", "hard"}, "nfs.reclaim": "Retain",
			"nfs.namespace": "shared-nfs", "nfs.release": "shared",
			"nfs.image": "localhost:5000/nfs-subdir-external-provisioner:v4.0.2", "claim.pods": true,
		}),
	)
	stepstest.Apply(t, made, steps.ApplyOptions{TakeOver: true})
	found := stepstest.Open(t, box, vsphere.Guide(), assets, "again", nil)
	if _, err := found.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, got := answersOf(t, made), answersOf(t, found)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		// where a chart came from, a release does not say
		if mine := strings.HasPrefix(key, "storage.") || strings.HasPrefix(key, "nfs.") ||
			strings.HasPrefix(key, "claim."); mine && key != "nfs.source" && got[key] != want[key] {
			t.Errorf("%s is %q, and found is %q", key, want[key], got[key])
		}
	}
	stepstest.Undo(t, found)
}

const foreign = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: theirs, namespace: default}
spec: {accessModes: [ReadWriteMany], storageClassName: nfs-client, resources: {requests: {storage: 1Mi}}}
`

// An undo keeps the provisioner while claims outside the link have volumes of its StorageClass.
func TestVerifyAProvisionerThatOthersNeedStays(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t, "")
	s := stepstest.Open(
		t, box, vsphere.Guide(), assets, "needed",
		stepstest.Given(t, box, vsphere.Guide(), map[string]any{"storage.source": "nfs"}),
	)
	stepstest.Apply(t, s, steps.ApplyOptions{TakeOver: true})
	box.Run(t, clustertest.Local, foreign, "apply", "-f", "-")
	for _, empty := range []bool{false, true} { // the second time nothing else is left
		p := stepstest.Undo(t, s)
		var said string
		for _, it := range p.Held() {
			said += it.What + "; "
			if !strings.Contains(it.Note, "default/theirs") {
				t.Errorf("undo says of %s: %s", it.What, it.Note)
			}
		}
		if p.Empty() != empty ||
			said != "Release nfs-provisioner/nfs-subdir-external-provisioner; Namespace nfs-provisioner; " {
			t.Errorf("undo, empty %v, leaves %s", p.Empty(), said)
		}
	}
	box.Run(t, clustertest.Local, "", "get", "deployment", "-n", "nfs-provisioner", "nfs-subdir-external-provisioner")
	box.Run(t, clustertest.Local, "", "delete", "persistentvolumeclaim", "-n", "default", "theirs")
	if held := stepstest.Undo(t, s).Held(); len(held) > 0 {
		t.Errorf("undo keeps %v, which is unused", held)
	}
	box.Run(t, clustertest.Local, "", "wait", "--for=delete", "--timeout=300s", "namespace/nfs-provisioner")
}

// A manual installation by upstream's instructions is found and stays unmanaged.
func TestVerifyStorageOfSomebodyElseIsTheirs(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t, "by-hand")
	s := stepstest.Open(t, box, vsphere.Guide(), assets, "by-hand", nil)
	if _, err := s.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := answersOf(t, s)
	for key, want := range map[string]string{
		"storage.source": "nfs", "storage.class": "nfs-client", "storage.test": "false", "nfs.namespace": "nfs-provisioner",
		"nfs.options": "[nfsvers=4.1]", "nfs.version": "4.0.18",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, and found is %q", key, want, got[key])
		}
	}
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range p.Actions {
		for _, i := range a.Change.Items {
			if a.Step == "nfs" && i.Verb.Changes() {
				t.Errorf("what is theirs would be changed: %s %s", i.Verb, i.What)
			}
		}
	}
}
