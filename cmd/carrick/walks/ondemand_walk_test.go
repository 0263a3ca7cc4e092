package walks

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cmd/carrick/carricktest"
	"carrick/steps/stepstest"
)

var throughOnDemand = carricktest.Walk{
	Steps:  12,
	Titles: map[int]string{2: "Bootstrap", 3: "Token", 4: "Root's kubectl", 8: "Hooks", 9: "Cluster file"},
}

// filesUnder returns the files of a machine without carrick's own records, by path: mode and content.
func filesUnder(t *testing.T, root string) map[string]string {
	t.Helper()
	out := stepstest.Files(t, root)
	maps.DeleteFunc(
		out, func(path, text string) bool { return text[0] == 'd' || strings.HasPrefix(path, "/var/lib/carrick/") },
	)
	if len(out) == 0 {
		t.Fatalf("there are no files in %s", root)
	}
	return out
}

// ofPortals lists the kinds of objects that a portal creates in its cluster.
const ofPortals = "namespaces,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,secrets,networkpolicies"

// The walk starts with a portal as it is shipped, and uses only keys until the namespace of a logged-in user exists and
// all checks pass. After the undo the files are unchanged. In the cluster only the objects remain that the portal's own
// hook has created for its users.
func ondemandByKeys(t *testing.T) {
	p := carricktest.LentDemo(t, "ondemand")
	p.Wait(carricktest.Beginning)
	node := p.InSandbox("web-node")
	portal := func() []string { return p.ObjectsOf("sandbox-remote", ofPortals) }
	files, objects := filesUnder(t, node), portal()
	p.Types("\r")
	throughOnDemand.Apply(p, 1, 9)
	p.Types("nn")
	p.Wait(
		`(?s)step 11 of 12.*The trial user's namespace exists with the hook's labels[ ┄]+✓ ok.*has no access to another user's namespace[ ┄]+✓ ok`,
	)
	p.Wait(`[78][0-9] ok · 2 warnings( · [0-9]+ skipped)? +live`)
	p.Types("g") // the row that says so may not be the one that was red last
	p.Wait(`user-(alice|bob); the hook last ran on`)
	if !slices.Contains(portal(), "rolebinding.rbac.authorization.k8s.io/alice-ood-user") {
		t.Error("the portal's hook has bound nobody")
	}
	installs(t, filepath.Join(node, "INSTALL"), filesUnder(t, node), files)
	p.Types("n")
	p.Wait(throughOnDemand.On(12))
	throughOnDemand.Undo(p)
	if d := cmp.Diff(files, filesUnder(t, node)); d != "" {
		t.Errorf("the web node is not as it was (-before +after):\n%s", d)
	}
	for _, name := range portal() {
		_, n, _ := strings.Cut(name, "/")
		if of := []string{
			"user-alice", "user-bob", "alice-ood-user", "alice-ood-initializer", "bob-ood-user", "bob-ood-initializer",
			"default", "deny-from-other-namespaces", "allow-from-nodes",
		}; !slices.Contains(objects, name) && !slices.Contains(of, n) {
			t.Errorf("left in the cluster: %s", name)
		}
	}
	p.Quits()
}

// installs fails the test unless INSTALL is a valid shell script that copies exactly the written files, each with its
// mode.
func installs(t *testing.T, path string, now, before map[string]string) {
	t.Helper()
	text, err := carricktest.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, has := range now {
		if name == "/INSTALL" || has == before[name] || strings.HasSuffix(name, ".before-demo") {
			continue
		}
		mode := map[string]string{"-rw-------": "0600", "-rw-r--r--": "0644", "-rwx------": "0700"}[strings.Fields(has)[0]]
		owner := "-o root -g root"
		if before[name] != "" { // it keeps its owner
			owner = fmt.Sprintf(`-o "$(stat -c %%u %[1]s)" -g "$(stat -c %%g %[1]s)"`, name)
		}
		if line := fmt.Sprintf("install -D %s -m %s .%s %s\n", owner, mode, name, name); !strings.Contains(text, line) {
			t.Errorf("INSTALL lacks %q:\n%s", line, text)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-n", path).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
