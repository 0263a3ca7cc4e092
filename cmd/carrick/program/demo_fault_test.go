package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/demo"
	"carrick/cmd/carrick/exit"
)

// twoFaults is the response of a sandbox that has two faults.
const twoFaults = `{"ok":true,"faults":[{"name":"no-binding","title":"somebody deleted the RoleBinding"},{"name":"old-token","title":"the token \u001b[31mhas ended"}]}`

// withSandbox puts carrick next to a fake sandbox program, which starts nothing. The program writes the commands that
// it receives to the file told, and responds to faults with the given text.
func withSandbox(t *testing.T, faults string) (path, told string) {
	t.Helper()
	dir := t.TempDir()
	path, told = filepath.Join(dir, "carrick"), filepath.Join(dir, "told")
	carricktest.Copy(t, carricktest.Program(t), path)
	script := fmt.Sprintf(`#!/bin/sh
echo '{"ready":true,"dir":"%[1]s","kubeconfigs":{"local":"%[1]s/a","remote":"%[1]s/b"},"contexts":{"local":"a","remote":"b"},"kubectl":"%[1]s/kubectl"}'
while read -r line; do
  echo "$line" >>%[2]s
  case $line in
  faults*) cat <<'END'
%[3]s
END
    ;;
  *) echo '{"ok":true}' ;;
  esac
done
`, dir, told, faults)
	if err := os.WriteFile(filepath.Join(dir, demo.Program), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path, told
}

func demoCommand(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(path, append([]string{"demo"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = carricktest.OwnEnvironment(cmd.Dir)
	return cmd
}

// Listing the faults requires no terminal.
func TestFaultsAreListed(t *testing.T) {
	t.Parallel()
	path, told := withSandbox(t, twoFaults)
	out, said, code := carricktest.Finish(t, demoCommand(t, path, "--list"))
	const want = "no-binding                   somebody deleted the RoleBinding\nold-token                    the token " +
		"has ended\n"
	if out != want || said != "" || code != 0 {
		t.Errorf("exit code %d, %q on standard error:\n%s", code, said, out)
	}
	if text, _ := carricktest.ReadFile(told); text != "faults renku\n" {
		t.Errorf("the sandbox was told %q", text)
	}
}

// The sandbox is an older version, or the guide has no faults.
func TestADemoWithoutFaults(t *testing.T) {
	t.Parallel()
	for _, says := range []string{
		`{"ok":false,"error":"unknown command \"faults renku\": want seed"}`, `{"ok":true,"faults":[]}`, `{"ok":true}`,
	} {
		path, _ := withSandbox(t, says)
		if out, said, code := carricktest.Finish(t, demoCommand(t, path, "--list")); out != "" ||
			said != "carrick: this demo has no faults\n" || code != exit.Usage {
			t.Errorf("%s: exit code %d, %q, %q", says, code, out, said)
		}
	}
	for _, says := range []string{`{"ok":false,"error":"the disk is full"}`, "nonsense"} {
		path, _ := withSandbox(t, says)
		if out, said, code := carricktest.Finish(t, demoCommand(t, path, "--list")); out != "" ||
			!strings.HasPrefix(said, "carrick: ") || code != exit.Other {
			t.Errorf("%s: exit code %d, %q, %q", says, code, out, said)
		}
	}
}

func TestFaultFlagsThatAreRefused(t *testing.T) {
	t.Parallel()
	path, told := withSandbox(t, twoFaults)
	for want, args := range map[string][]string{
		"--list and --fault cannot be used together": {"--list", "--fault", "no-binding"},
		`--fault "no binding" is not the name`:       {"--fault", "no binding"},
		`--fault "" is not the name`:                 {"--fault", ""},
		"the wizard requires a terminal, or answers": {"--fault", "no-binding"},
		`guide "nope" does not exist`:                {"nope", "--list"},
		"flag needs an argument: --fault":            {"--fault"},
		"--fault \"x\\nstop remote\" is not the n":   {"--fault", "x\nstop remote"},
	} {
		out, said, code := carricktest.Finish(t, demoCommand(t, path, args...))
		if out != "" || code != exit.Usage || !strings.Contains(said, want) {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out, said)
		}
	}
	if text, err := carricktest.ReadFile(told); err == nil {
		t.Errorf("the sandbox was told %q", text)
	}

	script := "#!/bin/sh\ntest \"$*\" = '--faults renku' && echo '" + twoFaults + "'\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), demo.Program), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, said, code := carricktest.Finish(t, demoCommand(t, path, "--fault", "nope"))
	if code != exit.Usage || !strings.Contains(said, `guide renku has no fault "nope"; its faults are:`) {
		t.Errorf("without a terminal: exit code %d, %q", code, said)
	}
}

// A demo in lines says which clusters it uses, and at the end that they are deleted.
func TestADemoInLines(t *testing.T) {
	t.Parallel()
	path, _ := withSandbox(t, twoFaults)
	for _, name := range []string{"a", "b"} {
		config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: %s, context: {cluster: c, user: u}}]
`, carricktest.NoServer, name)
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := demoCommand(t, path, "liqo")
	cmd.Stdin = strings.NewReader("q\n")
	out, said, code := carricktest.Finish(t, cmd)
	for _, want := range []string{
		"demo: two control planes on this machine", "kubectl --context a", "Step 1 of 9",
		"The clusters of the demo are deleted",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it never said %q:\n%s", want, out)
		}
	}
	if code != 0 || carricktest.Unfit(out+said) != "" {
		t.Errorf("exit code %d:\n%s%s", code, out, said)
	}
}

func TestADemoBeginsWithItsFault(t *testing.T) {
	t.Parallel()
	path, told := withSandbox(t, twoFaults)
	p := carricktest.StartOnTerminal(t, demoCommand(t, path, "renku", "--fault", "old-token"), "TERM=xterm-256color")
	p.Wait(`This demo starts with a fault: old-token\.`)
	p.Types("\x03")
	p.Leaves()
	if text, _ := carricktest.ReadFile(told); text != "faults renku\nseed renku\nseed renku old-token\n" {
		t.Errorf("the sandbox was told %q", text)
	}

	path, told = withSandbox(t, twoFaults)
	p = carricktest.StartOnTerminal(t, demoCommand(t, path, "--fault", "nope"), "TERM=xterm-256color")
	if code := p.Leaves(); code != exit.Usage {
		t.Errorf("exit code %d", code)
	}
	p.Wait(`(?s)guide renku has no fault "nope"; its faults are:\s+no-binding .*old-token`)
	if text, _ := carricktest.ReadFile(told); text != "faults renku\n" {
		t.Errorf("the sandbox was told %q", text)
	}
}
