package chart_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
)

// The helm program must accept carrick's releases as its own: list, upgrade, roll back and uninstall them. carrick must
// read the releases that helm installs.
func TestHelmItselfAgrees(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("helm")
	if err != nil {
		t.Skip("there is no helm on this machine's PATH")
	}
	const ns = "chart-helm"
	box, c := stage(t, ns)
	helm := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append([]string{
			"--kubeconfig", box.Kubeconfigs[clustertest.Remote], "--kube-context", box.Contexts[clustertest.Remote], "-n", ns,
		}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	req := wanted(ns, map[string]any{"message": "one"})
	if err := chart.Install(t.Context(), c, req, nil); err != nil {
		t.Fatal(err)
	}
	if out := helm("list"); !strings.Contains(out, "tiny-0.1.0") || !strings.Contains(out, "deployed") {
		t.Errorf("helm list: %s", out)
	}
	if out := helm("get", "values", "tiny"); !strings.Contains(out, "message: one") {
		t.Errorf("helm get values: %s", out)
	}
	helm("upgrade", "tiny", "testdata/tiny", "--set", "message=two,replicas=2", "--wait")
	r, err := chart.Current(t.Context(), c, ns, "tiny")
	if err != nil || r.Revision != 2 || r.Status != chart.Deployed {
		t.Fatalf("%+v, %v", r, err)
	}
	if v, _ := r.Value("message"); v != "two" {
		t.Errorf("message is %v", v)
	}
	if out := helm("history", "tiny"); !strings.Contains(out, "superseded") {
		t.Errorf("helm history: %s", out)
	}
	req.Values, req.TakeOver = map[string]any{"message": "three"}, true
	if err := chart.Install(t.Context(), c, req, nil); err != nil {
		t.Fatal(err)
	}
	helm("rollback", "tiny", "1", "--wait")
	got := box.Run(t, clustertest.Remote, "", "-n", ns, "get", "configmap/tiny", "-o", "jsonpath={.data.message}")
	if got != "one" {
		t.Errorf("after the rollback the message is %q", got)
	}
	helm("uninstall", "tiny", "--wait")
	if got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "secret,configmap,deployment", "-l", "app.kubernetes.io/managed-by=Helm",
		"-o", "name",
	); got != "" {
		t.Errorf("helm has left %s", got)
	}

	// The other way round.
	helm("install", "tiny", "testdata/tiny", "--set", "message=theirs")
	all, err := chart.Releases(t.Context(), c, ns)
	if err != nil || len(all) != 1 || all[0].Version != "0.1.0" {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := chart.Uninstall(
		t.Context(), c, chart.Request{Name: "tiny", Namespace: ns, Manager: "carrick.test"},
	); err != nil {
		t.Fatal(err)
	}
	if out := helm("list", "-q"); out != "" {
		t.Errorf("helm still lists %s", out)
	}
}
