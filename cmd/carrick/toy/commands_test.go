package toy

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/stepstest"
)

// If the link file is lost, adopt discovers the link by its marks and the existing objects. An undo with the discovered
// answers works.
func TestToyIsAdopted(t *testing.T) {
	t.Parallel()
	y := newToy(t)
	link := y.link(steps.Given{"account.namespace": "toy-two", "register.server": "https://spoke.example.org:6443"})
	_, ended := y.run(0, "apply", "--yes", link)
	if !regexp.MustCompile(`applied \d+ changes, all green: \d+ ok`).MatchString(ended) {
		t.Errorf("apply does not end with what it changed and the verdicts:\n%s", ended)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	found := filepath.Join(t.TempDir(), "found.yaml")
	adopt := []string{
		"adopt", "toy",
		"--context", y.box.Contexts[clustertest.Local], "--remote-context", y.box.Contexts[clustertest.Remote],
	}
	out, said := y.run(0, append(adopt, "-o", found, "--name", "lines")...)
	if !strings.Contains(out, "A set-up was found: ") || !strings.Contains(out, "First causes") {
		t.Errorf("it does not say what it found, and that an answer is missing:\n%s", out)
	}
	if !regexp.MustCompile(`(?m)account\.namespace +toy-two +# its label$`).MatchString(said) {
		t.Errorf("it has not found the namespace:\n%s", said)
	}
	text, err := carricktest.ReadFile(found)
	for _, want := range []string{"account.namespace: toy-two", "name: lines"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v, the link file lacks %q:\n%s", err, want, text)
		}
	}
	cmd := y.command(adopt...)
	_, said, code := carricktest.Finish(t, cmd)
	if code != 0 || !strings.Contains(said, "carrick created part of this set-up for link lines") {
		t.Errorf("exit code %d, and it does not say whose it is:\n%s", code, said)
	}
	again := filepath.Join(cmd.Dir, "lines.yaml")
	y.run(exit.Failed, "check", again)
	out, _ = y.run(exit.Failed, "diff", again)
	if strings.Contains(out, "create") || !strings.Contains(out, "change  ConfigMap default/toy-lines") {
		t.Errorf("there is more to do than to write the usual address:\n%s", out)
	}
	y.run(0, "undo", "--yes", again)
	y.nothingLeft()
}

const toyLink = `apiVersion: carrick/v1alpha1
kind: Link
metadata: {name: gitops}
guide: toy
local: {context: sandbox-local}
remote: {context: sandbox-remote}
`

// The user applies an export as README.txt says, and creates the one omitted Secret manually. All checks of the link
// then pass. The export contains no token, and does not depend on who applied the link.
func TestToyExportIsEnough(t *testing.T) {
	t.Parallel()
	y := newToy(t)
	path := os.Getenv("PATH") + string(os.PathListSeparator) + filepath.Dir(y.box.Kubectl)
	g := &carricktest.Gitops{T: t, Box: y.box, Dir: t.TempDir()}
	g.Env = append(carricktest.OwnEnvironment(g.Dir), y.kubeconfig, "PATH="+path)
	g.Write("link.yaml", toyLink)
	g.Run("carrick-toy", "export", "link.yaml", "fresh")
	g.Run("carrick-toy", "export", "link.yaml", "again")
	g.Run("diff", "-r", "fresh", "again")
	readme := g.Run("cat", "fresh/README.txt")
	for _, want := range []string{
		"apply --server-side -k local", "apply --server-side -k remote", "a Secret whose values do not exist yet",
		"carrick check ../link.yaml --wait 2m",
	} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.txt lacks %q:\n%s", want, readme)
		}
	}
	script := strings.ReplaceAll(g.Commands("fresh"), "carrick check ../link.yaml --wait 2m", "")
	g.Run("sh", "-euc", "cd fresh\n"+script)
	filled := []string{"wait", "--for=jsonpath={.data.token}", "--timeout=5m", "-n", "toy", "secret/hub-token"}
	y.box.Run(t, clustertest.Remote, "", filled...)
	token := y.token(clustertest.Remote, "toy", "hub-token")
	y.box.Run(t, clustertest.Local, "", "create", "secret", "generic", "toy-gitops", "--from-literal=token="+token)
	g.Run("carrick-toy", "check", "--wait", "5m", "link.yaml")

	said := g.Run("carrick-toy", "export", "link.yaml", "after")
	g.NoSecrets("after", said, token)
	if named := g.Run("cat", "after/README.txt"); !strings.Contains(named, "Secret default/toy-gitops (key token)") {
		t.Errorf("README.txt does not name the Secret that is left out:\n%s", named)
	}
	for _, side := range []string{"local", "remote"} {
		g.Run("diff", "-r", "fresh/"+side, "after/"+side)
	}

	// carrick takes part in it when it is told to, and leaves it as it was.
	before := stepstest.Snapshot(t, y.box)
	plan, err := g.Command("carrick-toy", "diff", "link.yaml")
	if err == nil || !strings.Contains(plan, "carrick/link.gitops") {
		t.Errorf("diff: %v\n%s", err, plan)
	}
	for line := range strings.Lines(plan) {
		diff, ok := strings.CutPrefix(line, "      ")
		added, more := strings.CutPrefix(diff, "+")
		if ok && (strings.HasPrefix(diff, "-") || more && !carricktest.OnlyMarks.MatchString(strings.TrimSpace(added))) {
			t.Errorf("apply would do more than mark: %s", line)
		}
	}
	g.Run("carrick-toy", "apply", "--yes", "link.yaml")
	g.Run("carrick-toy", "export", "link.yaml", "marked")
	g.Run("diff", "-r", "after", "marked")
	g.Run("carrick-toy", "undo", "--yes", "link.yaml")
	if d := cmp.Diff(before, stepstest.Snapshot(t, y.box)); d != "" {
		t.Errorf("apply and undo did not leave it as it was (-before +after):\n%s", d)
	}
	g.Run("carrick-toy", "check", "link.yaml")
}

// An interrupt stops an apply immediately, with a message. The changes so far are kept, and the same command continues.
func TestToyIsInterrupted(t *testing.T) {
	t.Parallel()
	y := newToy(t)
	link := y.link(steps.Given{"account.approval": true})
	cmd := y.command("apply", "--yes", link)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := bufio.NewScanner(out)
	for done.Scan() && done.Text() != "spoke: create Secret toy/hub-token" {
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatalf("%v:\n%s", err, said.String())
	}
	_ = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if code != exit.Interrupted || !strings.Contains(said.String(), "carrick: interrupted; nothing is lost") {
		t.Errorf("exit code %d, not %d:\n%s", code, exit.Interrupted, said.String())
	}
	y.run(exit.Unknown, "check", link, "--only", "account")
	y.run(exit.Failed, "check", link)
	y.approve()
	goesOn, _ := y.run(0, "apply", "--yes", link)
	left := "hub: create ClusterRole carrick:lines\nhub: create ConfigMap default/toy-lines\nhub: create Secret " +
		"default/toy-lines\n"
	if goesOn != left {
		t.Errorf("it did not go on from there:\n%s", goesOn)
	}
	y.run(0, "check", link)
	y.run(0, "undo", "--yes", link)
	y.nothingLeft()
}

// run runs a command, and fails the test unless it exits with that code and prints no token.
func (y *toyAt) run(want int, args ...string) (out, said string) {
	y.Helper()
	out, said, code := carricktest.Finish(y, y.command(args...))
	if code != want {
		y.Fatalf("%s: exit code %d, not %d:\n%s%s", strings.Join(args, " "), code, want, out, said)
	}
	if strings.Contains(out+said, "eyJ") || carricktest.Unfit(out+said) != "" {
		y.Errorf("%s said a token, or what is not fit for a terminal:\n%s%s", strings.Join(args, " "), out, said)
	}
	return out, said
}
