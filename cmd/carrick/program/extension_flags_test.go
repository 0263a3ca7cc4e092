package program

import (
	"os/exec"
	"strings"
	"testing"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/exit"
)

// The extension has the usual flags of webhooks, and rejects flags that it would ignore.
func TestFlagsOfTheExtension(t *testing.T) {
	t.Parallel()
	run := func(args ...string) (out, said string, code int) {
		cmd := exec.Command(carricktest.Program(t), append([]string{"vsphere-extension"}, args...)...)
		cmd.Env = carricktest.OwnEnvironment(t.TempDir())
		return carricktest.Finish(t, cmd)
	}
	out, _, code := run("--help")
	for _, flag := range []string{
		"--bind-address", "--health-probe-bind-address", "--cert-dir", "--leader-elect", "-v, --v", "--kubeconfig",
		"--context",
	} {
		if !strings.Contains(out, flag+" ") || code != 0 {
			t.Errorf("its help lacks %s", flag)
		}
	}
	for _, flag := range []string{"--theme", "--as", "--remote-context"} {
		if strings.Contains(out, flag) {
			t.Errorf("its help has %s", flag)
		}
		if _, said, code := run(flag+"=dark", "--class=nfs"); code != exit.Usage ||
			!strings.Contains(said, "has no flag "+flag) {
			t.Errorf("%s: exit code %d: %s", flag, code, said)
		}
	}
	follows := []string{
		"--level=baseline", "--leader-elect", "--leader-elect-resource-namespace=a", "--kubeconfig=/none/such",
		"--context=here",
	}
	if _, said, code := run(follows...); code == 0 || !strings.Contains(said, "find the API server") {
		t.Errorf("with a kubeconfig that does not exist: exit code %d: %s", code, said)
	}
}
