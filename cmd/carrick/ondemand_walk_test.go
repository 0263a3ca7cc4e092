package main

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/steps/stepstest"
)

var throughOnDemand = walk{
	steps:  12,
	titles: map[int]string{2: "Bootstrap", 3: "Token", 4: "Root's kubectl", 8: "Hooks", 9: "Cluster file"},
}

// inSandbox is a file of the sandbox that the demo on a terminal runs on.
func (p *terminal) inSandbox(name string) string {
	p.t.Helper()
	dir := filepath.Join(strings.TrimPrefix(p.mark, "TMPDIR="), "carrick-sandbox-*")
	found, err := filepath.Glob(filepath.Join(dir, name))
	lent, errLent := filepath.Glob(filepath.Join(dir, clustertest.RelayedBox, name))
	if found = append(found, lent...); len(found) != 1 {
		p.t.Fatalf("%s of the sandbox: %v, %v", name, found, errors.Join(err, errLent))
	}
	return found[0]
}

// filesUnder are the files of a machine but what carrick notes of its own: path to mode and content.
func filesUnder(t *testing.T, root string) map[string]string {
	t.Helper()
	out := stepstest.Files(t, root)
	maps.DeleteFunc(out, func(path, text string) bool { return text[0] == 'd' || strings.HasPrefix(path, "/var/lib/carrick/") })
	if len(out) == 0 {
		t.Fatalf("there are no files in %s", root)
	}
	return out
}

// ofPortals are the kinds of objects that a portal has in its cluster.
const ofPortals = "namespaces,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,secrets,networkpolicies"

// objectsOf are the names of what is in a cluster of the demo.
func (p *terminal) objectsOf(context, kinds string) []string {
	p.t.Helper()
	names := strings.Fields(p.kubectl(context, "get", kinds, "-A", "-o", "name"))
	if len(names) < 20 {
		p.t.Fatalf("%d objects", len(names))
	}
	// A namespace that was there before may get its copy of the cluster's CA after the first look.
	names = slices.DeleteFunc(names, func(name string) bool { return name == "configmap/kube-root-ca.crt" })
	slices.Sort(names)
	return names
}

// kubectl is run in a second terminal, as the first screen of the demo says.
func (p *terminal) kubectl(context string, args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "sh", slices.Concat([]string{"-c", `. "$1" && shift && kubectl --context "$@"`, "sh", p.inSandbox("env"), context}, args)...)
	cmd.Env = ownEnvironment(p.t.TempDir())
	out, said, code := finish(p.t, cmd)
	if code != 0 {
		p.t.Fatalf("exit code %d: %s", code, said)
	}
	return out
}

// From a portal as it is shipped to the namespace of a user who has logged in, by
// keys alone, all green; and back: the files are as they were, and of the cluster's
// objects stay those that the portal's own hook has made for its users.
func ondemandByKeys(t *testing.T) {
	p := demoLent(t, "ondemand")
	p.wait(beginning)
	node := p.inSandbox("web-node")
	portal := func() []string { return p.objectsOf("sandbox-remote", ofPortals) }
	files, objects := filesUnder(t, node), portal()
	p.types("\r")
	throughOnDemand.apply(p, 1, 9)
	p.types("nn")
	p.wait(`(?s)step 11 of 12.*the trial user's namespace is as the hook makes it +✓ ok.*may do nothing in another's namespace +✓ ok`)
	p.wait(`[78][0-9] ok · 2 warnings · 3[0-9] skipped`)
	p.types("g") // the row that says so may not be the one that was red last
	p.wait(`user-(alice|bob); the hook last ran on`)
	if !slices.Contains(portal(), "rolebinding.rbac.authorization.k8s.io/alice-ood-user") {
		t.Error("the portal's hook has bound nobody")
	}
	installs(t, filepath.Join(node, "INSTALL"), filesUnder(t, node), files)
	p.types("n")
	p.wait(throughOnDemand.on(12))
	throughOnDemand.undo(p)
	if d := cmp.Diff(files, filesUnder(t, node)); d != "" {
		t.Errorf("the web node is not as it was (-before +after):\n%s", d)
	}
	for _, name := range portal() {
		_, n, _ := strings.Cut(name, "/")
		if of := []string{"user-alice", "user-bob", "alice-ood-user", "alice-ood-initializer", "bob-ood-user", "bob-ood-initializer", "default", "deny-from-other-namespaces", "allow-from-nodes"}; !slices.Contains(objects, name) && !slices.Contains(of, n) {
			t.Errorf("left in the cluster: %s", name)
		}
	}
	p.quits()
}

// installs fails unless what INSTALL copies are the files that were written, each
// with its mode, and it is a script that a shell takes.
func installs(t *testing.T, path string, now, before map[string]string) {
	t.Helper()
	text, err := readFile(path)
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
