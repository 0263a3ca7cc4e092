package vsphere_test

import (
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// ofStorage maps the sandbox's faults of clusters and storage to the expected findings. If adopted
// is true, the fault affects a setup that was installed manually.
var ofStorage = map[string]struct {
	adopted  bool
	answered bool // all questions are answered, because no provisioner is found without its ClusterRoleBinding
	try      bool // a test claim is created first
	finds    []stepstest.Finding
}{
	"second-default": {
		finds: []stepstest.Finding{
			{Check: "default-class", Found: "2 StorageClasses are marked as default", Fix: "annotate storageclass", Fixed: true},
		},
	},
	"page-pvc": {
		finds: []stepstest.Finding{
			{
				Check: "page-class", Found: "claims name a StorageClass that does not exist: kubeflow/test-pvc",
				Fix: "delete persistentvolumeclaim test-pvc", Fixed: true,
			},
		},
	},
	"provisioner-down": {adopted: true, try: true, finds: []stepstest.Finding{
		{Check: "provisioner-ready", Found: "is scaled to 0 replicas", Fix: "scale deployment", Fixed: true},
	}},
	"provisioner-name": {adopted: true, try: true, finds: []stepstest.Finding{
		{
			Check: "provisioner-name", Found: "the Deployment creates no volumes of that StorageClass",
			Fix: "set env deployment/nfs-subdir-external-provisioner PROVISIONER_NAME=", Fixed: true,
		},
	}},
	"provisioner-rights": {adopted: true, answered: true, try: true, finds: []stepstest.Finding{
		{
			Check: "provisioner-rights", Found: "is not allowed to get persistentvolumes",
			Fix: "create clusterrolebinding run-nfs-subdir-external-provisioner", Fixed: true,
		},
	}},
	"access-denied": {adopted: true, finds: []stepstest.Finding{
		{Check: "nfs-export", Found: "access denied by server while mounting", Fix: "no_root_squash"},
	}},
}

func TestVerifyLiveFaultsOfStorage(t *testing.T) {
	stepstest.Live(t, "live", stepstest.Except(ofStorage, nil), func(t *testing.T, box *clustertest.Sandbox, name string) {
		f := ofStorage[name]
		box.SeedFault(t, "vsphere", name)
		given := map[string]any{}
		switch {
		case f.answered:
			given = stepstest.Given(t, box, vsphere.Guide(), map[string]any{"storage.test": false, "claim.pods": false})
		case !f.adopted:
			given = stepstest.Given(t, box, vsphere.Guide(), nil)
		}
		x := stepstest.SiteOf(t, box, vsphere.Guide(), assets, f.adopted, given)
		if f.try {
			applied(t, x.Session, "claim")
		}
		x.Finds(f.finds)
	})
}

// applied applies step storage and another step, and expects that the test claim is not bound.
func applied(t *testing.T, s *engine.Session, step string) {
	t.Helper()
	p, err := s.Plan(t.Context(), engine.Scope{Steps: []string{"storage", step}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err == nil {
		t.Error("a claim was bound all the same")
	}
}

// If the guest has its own file volumes, carrick does not set up NFS, regardless of earlier
// answers.
func TestVerifyNativeVolumesNeedNothingElse(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	box := seeded(t, "native-rwx")
	given := stepstest.Given(t, box, vsphere.Guide(), map[string]any{"storage.source": "nfs"})
	s := stepstest.Open(t, box, vsphere.Guide(), assets, "nfs", given)
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err == nil ||
		!strings.Contains(err.Error(), "carrick does not set up NFS") {
		t.Errorf("NFS is built although it is not needed: %v", err)
	}
	if out := box.Run(
		t, clustertest.Local, "", "get", "namespace", "nfs-provisioner", "--ignore-not-found", "-o", "name",
	); out != "" {
		t.Errorf("%s is there", out)
	}
	stepstest.Undo(t, s)
	for _, key := range []string{"nfs.server", "nfs.path", "nfs.source"} {
		delete(given, key)
	}
	given["storage.source"] = "native"
	stepstest.CycleOver(t, box, vsphere.Guide(), assets, "native", given)
}
