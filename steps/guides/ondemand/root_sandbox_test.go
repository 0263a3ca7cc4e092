package ondemand

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

// realNode is a folder that represents a web node of a cluster with a real API server. Its kubectl is real. Its systemd
// is a fake that records the commands.
type realNode struct {
	t       *testing.T
	box     *clustertest.Sandbox
	root    string
	enabled bool
	ran     []string
}

func newRealNode(t *testing.T, box *clustertest.Sandbox) *realNode {
	t.Helper()
	n := &realNode{t: t, box: box, root: t.TempDir()}
	n.put("/usr/local/bin/kubectl", "stand-in for the program", 0o755)
	n.put("/etc/sudoers", "Defaults secure_path=/usr/local/bin:/usr/bin\n", 0o440)
	n.put("/etc/systemd/system/other.timer", "", 0o644)
	return n
}

func (n *realNode) put(path, text string, mode fs.FileMode) {
	n.t.Helper()
	at := filepath.Join(n.root, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), mode); err != nil {
		n.t.Fatal(err)
	}
}

func (n *realNode) read(path string) string {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.root, path))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(b)
}

func (n *realNode) run(ctx context.Context, name string, args ...string) (string, string, error) {
	n.ran = append(n.ran, strings.Join(append([]string{name}, args...), " "))
	fails := func(word string) (string, string, error) {
		return word + "\n", "", exec.CommandContext(ctx, "sh", "-c", "exit 3").Run()
	}
	switch {
	case name == "/usr/local/bin/kubectl":
		out, err := exec.CommandContext(ctx, n.box.Kubectl, args...).Output()
		return string(out), "", err
	case name != "systemctl":
		return "", "", &exec.Error{Name: name, Err: exec.ErrNotFound}
	case args[0] == "enable" || args[0] == "disable":
		n.enabled = args[0] == "enable"
	case args[0] == "show":
		return "NeedDaemonReload=no\n", "", nil
	case !n.enabled:
		return fails("disabled")
	}
	return "enabled\n", "", nil
}

// session opens a link with that name between the node and the sandbox's remote side.
func (n *realNode) session(name string) *engine.Session {
	n.t.Helper()
	h, err := host.NewWith(n.root, host.Options{
		Run: n.run, Owner: func(string) (int, int, bool) { return 0, 0, true }, ByRoot: func() bool { return true },
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return stepstest.OpenWith(
		n.t, Guide(), os.DirFS("../../../assets/ondemand"), name, map[string]any{"registry.enabled": false},
		map[steps.Side]engine.Endpoint{
			steps.Local:  {Host: h, Name: "web node"},
			steps.Remote: {Cluster: n.box.Open(n.t, clustertest.Remote, cluster.Options{}), Name: "remote"},
		},
	)
}

// renew runs the node's renewal script. Only the paths in it are replaced with paths in the node's folder.
func (n *realNode) renew() (string, error) {
	n.t.Helper()
	dir := n.t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	moved := strings.NewReplacer(
		"'/usr/local/bin/kubectl'", "'"+n.box.Kubectl+"'", "'"+rootKubeconfig+"'", "'"+kubeconfig+"'", siteHooks+"/",
		n.root+siteHooks+"/",
	)
	script := filepath.Join(dir, "renew")
	for at, text := range map[string]string{kubeconfig: n.read(rootKubeconfig), script: n.read(renewScript)} {
		if err := os.WriteFile(at, []byte(moved.Replace(text)), 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(n.t.Context(), "/bin/sh", script).CombinedOutput()
	return string(out), err
}

// files maps the path of each file of the node to its mode and content.
func (n *realNode) files() map[string]string {
	n.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(n.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		b, _ := os.ReadFile(path)
		out[strings.TrimPrefix(path, n.root)] = fmt.Sprintf("%v %x", info.Mode(), b)
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

func (n *realNode) verdicts(s *engine.Session, names ...string) map[string]steps.Result {
	n.t.Helper()
	var cells []steps.Cell
	for _, name := range names {
		_, step := s.Guide().Check(name)
		cells = append(cells, steps.Cell{Step: step.Name, Check: name, Side: steps.Local})
	}
	board, _ := s.Look(n.t.Context(), cells)
	out := map[string]steps.Result{}
	for _, c := range cells {
		out[c.Check] = board.Verdict(c)
	}
	return out
}

var rootSteps = engine.Scope{Steps: []string{"bootstrap", "token", "kubectl"}}

func (n *realNode) apply(s *engine.Session) {
	n.t.Helper()
	p, err := s.Plan(n.t.Context(), rootSteps)
	if err == nil {
		err = s.Apply(n.t.Context(), p, steps.ApplyOptions{}, nil)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// TestVerifyRootOnARealCluster creates root's token, kubeconfig and renewal, renews the token with the script against a
// real API server, and undoes everything.
func TestVerifyRootOnARealCluster(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	n := newRealNode(t, box)
	before := n.files()
	n.apply(n.session("root"))

	all := slices.Concat(tokenFileChecks(), kubectlChecks(), rootChecks())
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	green := func() {
		t.Helper()
		for name, r := range n.verdicts(n.session("root"), names...) {
			if r.Status != steps.Pass {
				t.Errorf("%s: %s: %s", name, r.Status, r.Found)
			}
		}
	}
	green()
	first := n.read(rootToken)
	if out, err := n.renew(); err != nil {
		t.Fatalf("the renewal: %v: %s", err, out)
	}
	if n.read(rootToken) == first {
		t.Error("the renewal left the token as it was")
	}
	green()

	again, err := n.session("root").Plan(t.Context(), rootSteps)
	if err != nil || !again.Empty() {
		t.Errorf("a second apply would change something once the token was renewed: %+v, %v", again, err)
	}

	box.Run(t, clustertest.Remote, "", "-n", "ondemand", "delete", "rolebinding", "ondemand-token-renew")
	renewed := n.read(rootToken)
	out, err := n.renew()
	if err == nil || !strings.Contains(out, "forbidden") || strings.Contains(out, strings.Split(renewed, ".")[1]) ||
		n.read(rootToken) != renewed {
		t.Errorf("without the right to renew: %v: %s; the token stays: %v", err, out, n.read(rootToken) == renewed)
	}
	if r := n.verdicts(n.session("root"), "root-renews")["root-renews"]; r.Status != steps.Fail {
		t.Errorf("root-renews: %+v", r)
	}

	stepstest.Undo(t, n.session("root"))
	if after := n.files(); !maps.Equal(after, before) {
		t.Errorf("files before: %v\nafter: %v", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
	if n.enabled || !slices.Contains(n.ran, "systemctl enable --now carrick-ondemand-token.timer") {
		t.Errorf("the timer is still enabled: %v; run was %q", n.enabled, n.ran)
	}
}
