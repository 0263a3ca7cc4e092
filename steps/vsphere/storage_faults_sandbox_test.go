package vsphere_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/stepstest"
	"carrick/steps/vsphere"
)

// finding is what a check has to say of something that is wrong, and whether its
// fix, as it is printed, is run and has to make it hold.
type finding struct {
	check, found, fix string
	mended            bool
}

// ofStorage are the sandbox's faults of clusters and storage: which checks find
// them. Those of a set-up that stands are of one that somebody made by hand.
var ofStorage = map[string]struct {
	adopted bool
	try     bool // a claim is tried first
	finds   []finding
}{
	"wrong-cluster":  {finds: []finding{{"guest-cluster", "this is a Supervisor", "kubectl vsphere login", false}}},
	"second-default": {finds: []finding{{"default-class", "2 classes are the default one", "annotate storageclass", true}}},
	"no-default":     {finds: []finding{{"default-class", "there is no default storage class", "on the Supervisor: ", false}}},
	"page-pvc":       {finds: []finding{{"page-class", "claims name a class that is not there: kubeflow/test-pvc", "delete persistentvolumeclaim test-pvc", true}}},
	"class-deletes":  {adopted: true, finds: []finding{{"class-keeps", `archiveOnDelete is "false"`, "delete storageclass nfs-client", false}}},
	"provisioner-down": {adopted: true, try: true, finds: []finding{
		{"provisioner-ready", "has no pod", "scale deployment", true},
	}},
	"provisioner-name": {adopted: true, try: true, finds: []finding{
		{"provisioner-name", "it makes no volumes of that class", "set env deployment/nfs-subdir-external-provisioner PROVISIONER_NAME=", true},
	}},
	"provisioner-rights": {adopted: true, try: true, finds: []finding{
		{"provisioner-rights", "may not get persistentvolumes", "create clusterrolebinding run-nfs-subdir-external-provisioner", true},
	}},
	"old-provisioner": {adopted: true, finds: []finding{{"provisioner-ready", "which makes no volumes from Kubernetes 1.20 on", "uninstall", false}}},
	"export-closed":   {adopted: true, finds: []finding{{"nfs-port", "2049", "nc -vz", false}}},
	"access-denied": {adopted: true, finds: []finding{
		{"nfs-export", "access denied by server while mounting", "no_root_squash", false},
	}},
	"write-denied": {adopted: true, try: true, finds: []finding{
		{"nfs-writes", "ermission denied", "sudo exportfs -v", false},
		{"claim-bound", "ermission denied", "sudo exportfs -v", false},
		{"claim-events", "ermission denied", "sudo exportfs -v", false},
	}},
	"no-mount-helper": {adopted: true, finds: []finding{{"nfs-mount-helper", "has no mount.nfs", "nfs-common", false}}},
}

func TestFaultsOfStorageAreNamedAndMended(t *testing.T) {
	box := clustertest.Start(t)
	for _, name := range slices.Sorted(maps.Keys(ofStorage)) {
		t.Run(name, func(t *testing.T) {
			stepstest.Third(t)
			f := ofStorage[name]
			box.SeedFault(t, "vsphere", name)
			given := map[string]any{}
			if !f.adopted {
				given = stepstest.Given(t, box, vsphere.Guide(), nil)
			}
			x := stepstest.SiteOf(t, box, vsphere.Guide(), assets, f.adopted, given)
			if f.try {
				applied(t, x.Session, "claim")
			}
			was := map[string]steps.Result{}
			x.Forget()
			for _, s := range f.finds {
				was[s.check] = x.Named(s.check, s.found, s.fix)
			}
			for _, s := range f.finds {
				if s.mended {
					x.Mends(s.check, was[s.check])
				}
			}
		})
	}
}

// applied does what a step asks for, whether or not its checks come to hold.
func applied(t *testing.T, s *steps.Session, step string) {
	t.Helper()
	p, err := s.Plan(t.Context(), steps.Scope{Steps: []string{"storage", step}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err == nil {
		t.Error("a claim was bound all the same")
	}
}

// Where the guest has file volumes of its own, nothing else is made, whatever was
// answered before.
func TestNativeVolumesNeedNothingElse(t *testing.T) {
	stepstest.Long(t)
	box := seeded(t, "native-rwx")
	given := stepstest.Given(t, box, vsphere.Guide(), map[string]any{"storage.source": "nfs"})
	s := stepstest.Open(t, box, vsphere.Guide(), assets, "nfs", given)
	p, err := s.Plan(t.Context(), steps.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err == nil || !strings.Contains(err.Error(), "nothing of NFS is built") {
		t.Errorf("NFS is built although it is not needed: %v", err)
	}
	if out := box.Run(t, clustertest.Local, "", "get", "namespace", "nfs-provisioner", "--ignore-not-found", "-o", "name"); out != "" {
		t.Errorf("%s is there", out)
	}
	stepstest.Undo(t, s)
	for _, key := range []string{"nfs.server", "nfs.path", "nfs.source"} {
		delete(given, key)
	}
	given["storage.source"] = "native"
	stepstest.CycleOver(t, box, vsphere.Guide(), assets, "native", given)
}
