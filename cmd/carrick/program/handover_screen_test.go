package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"carrick/cmd/carrick/carricktest"
	"carrick/steps/engine"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
)

const duoLink = "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: milan-rome}\nguide: duo\n"

// duoFolder returns a folder with both admins' link files, a facts file of the side house, and the folders of both
// sides.
func duoFolder(t *testing.T) (dir string, run func(args ...string) (out, said string, code int)) {
	t.Helper()
	dir = t.TempDir()
	for path, text := range map[string]string{
		"guest/etc/name": "milan\n", "house/etc/name": "villa\n", "house/etc/word": "sesame-4711\n",
		"guest.yaml": duoLink + "local: {host: {root: guest}}\nremote: {facts: theirs.facts}\n",
		"house.yaml": duoLink + "remote: {host: {root: house}}\n",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run = func(args ...string) (string, string, int) {
		t.Helper()
		cmd := exec.Command("carrick-duo", args...)
		cmd.Dir, cmd.Env = dir, carricktest.OwnEnvironment(dir)
		return carricktest.Finish(t, cmd)
	}
	if _, said, code := run("handover", "house.yaml", "-o", "theirs.facts"); code != 0 {
		t.Fatal(said)
	}
	return dir, run
}

// The admin hands over a side with keys only, and sees what to request from the other admin. carrick immediately reads
// a newer file in the same place. An unusable file makes the checks unknown.
func TestHandingOverByKeys(t *testing.T) {
	t.Parallel()
	dir, run := duoFolder(t)
	cmd := exec.Command("carrick-duo", "guest.yaml")
	cmd.Dir = dir
	p := carricktest.StartOnTerminal(t, cmd, "A=B")
	p.Wait(`The guest has the house's name[ ┄]+(✗ FAIL|○ to do)`)
	p.Types("h")
	p.Wait(`Hand over the guest`)
	p.Wait(`secrets for +none`)
	p.Wait(`carrick handover\s+guest.yaml`)
	p.Wait(`the house's admin adds your file to their link file`)
	p.Types("\r")
	p.Types("milan")
	p.Types("\r")
	p.Wait(`milan is not a valid recipient`)
	p.Types("\x15")
	p.Types("\r")
	p.Wait(`wrote milan-rome-guest.facts`)
	p.Wait(`signed with the key`)
	if _, err := os.Stat(filepath.Join(dir, "milan-rome-guest.facts")); err != nil {
		t.Error(err)
	}
	p.Types("\r")
	p.Wait(`a apply`)

	good, err := os.ReadFile(filepath.Join(dir, "theirs.facts"))
	if err != nil {
		t.Fatal(err)
	}
	replace := func(text string) {
		t.Helper()
		at := filepath.Join(dir, "theirs.facts")
		if err := os.WriteFile(at+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(at+".new", at); err != nil {
			t.Fatal(err)
		}
	}
	replace(strings.Replace(string(good), "name: villa", "name: shack", 1))
	p.Wait(`[1-9] unknown`)
	if err := os.Remove(filepath.Join(dir, "house/etc/name")); err != nil {
		t.Fatal(err)
	}
	if _, said, code := run("handover", "house.yaml", "-o", "newer.facts"); code != 0 {
		t.Fatal(said)
	}
	newer, err := os.ReadFile(filepath.Join(dir, "newer.facts"))
	if err != nil {
		t.Fatal(err)
	}
	replace(string(newer))
	p.Wait(`[0-9] ok( · [0-9] skipped)? +live`)
	p.Types("q")
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestTheGuidesForTwoAreValid(t *testing.T) {
	if err := engine.Validate(carricktest.TwoAdmins(), os.DirFS(t.TempDir())); err != nil {
		t.Error(err)
	}
}

// confirmedIn fails the test unless the guest's link file names the key that signed the house's file or, if want is
// false, names no key.
func confirmedIn(t *testing.T, dir string, want bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "theirs.facts"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := facts.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	l, err := linkfile.Load(filepath.Join(dir, "guest.yaml"), carricktest.TwoAdmins())
	if err != nil {
		t.Fatal(err)
	}
	if (l.Remote.Signer == f.Signer) != want || !want && l.Remote.Signer != "" {
		t.Errorf("the link file has the signer %q; the file is signed by %s", l.Remote.Signer, f.Signer)
	}
}

// Before the first change, carrick asks whose key signed the file. It stores the answer in the link file and does not
// ask again. This holds on the screen, in lines and for apply.
func TestASignerIsConfirmedByKeys(t *testing.T) {
	t.Parallel()
	dir, _ := duoFolder(t)
	start := func() *carricktest.Terminal {
		cmd := exec.Command("carrick-duo", "guest.yaml")
		cmd.Dir = dir
		p := carricktest.StartOnTerminal(t, cmd, "A=B")
		p.Wait(`The guest has the house's name[ ┄]+(✗ FAIL|○ to do|✓)`)
		return p
	}
	p := start()
	p.Types("a")
	p.Wait(`Is this the key of the house's admin\?`)
	p.Wait(`SHA256:`)
	p.Wait(`compare the key with`)
	p.Types("n")
	p.Wait(`nothing was changed`)
	confirmedIn(t, dir, false)
	p.Types("a")
	p.Wait(`Is this the key of the house's admin\?`)
	p.Types("y")
	p.Wait(`Apply Names\?`)
	p.Types("y")
	p.Wait(`(?s)the others wait for.*q quit`)
	p.Wait(`The guest has the house's name[ ┄]+✓`)
	confirmedIn(t, dir, true)
	p.Types("u")
	p.Wait(`Undo Names\?`)
	p.Types("y")
	p.Wait(`(?s)undid Names.*q quit`)
	p.Types("q")
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	p = start()
	p.Types("a")
	p.Wait(`Apply Names\?`)
	p.Types("n")
	p.Wait(`nothing was changed`)
	p.Types("q")
	p.Leaves()
	confirmedIn(t, dir, true)
}

func TestASignerIsConfirmedInLines(t *testing.T) {
	t.Parallel()
	dir, _ := duoFolder(t)
	talk := func(input string) (out, said string, code int) {
		t.Helper()
		cmd := exec.Command("carrick-duo", "guest.yaml")
		cmd.Dir, cmd.Env = dir, append(carricktest.OwnEnvironment(dir), "ACCESSIBLE=1")
		cmd.Stdin = strings.NewReader(input)
		out, said, code = carricktest.Finish(t, cmd)
		return strings.Join(strings.Fields(out), " "), said, code
	}
	const question = "Is this the key of the house's admin? [y/N]"
	out, said, code := talk("a\n")
	if code != 2 || !strings.Contains(said, "carrick apply guest.yaml --step names --yes --signer SHA256:") {
		t.Errorf("the input ends: exit code %d: %s\n%s", code, out, said)
	}
	out, said, code = talk("a\nn\nq\n")
	if code != 0 || !strings.Contains(out, question+" Nothing was changed.") {
		t.Errorf("no: exit code %d: %s\n%s", code, out, said)
	}
	confirmedIn(t, dir, false)
	out, said, code = talk("a\ny\ny\nq\n")
	if code != 0 || !strings.Contains(out, question) || !strings.Contains(out, "is signed with the key SHA256:") ||
		!strings.Contains(out, "compare the key with the house's admin.") ||
		!strings.Contains(out, "created /etc/greeting.") {
		t.Errorf("yes: exit code %d: %s\n%s", code, out, said)
	}
	confirmedIn(t, dir, true)
	out, said, code = talk("u\ny\nq\n")
	if code != 0 || strings.Contains(out, question) || !strings.Contains(out, "Done: 1 change") {
		t.Errorf("once more: exit code %d: %s\n%s", code, out, said)
	}
}

func TestASignerIsConfirmedByApply(t *testing.T) {
	t.Parallel()
	dir, run := duoFolder(t)
	start := func(args ...string) *carricktest.Terminal {
		cmd := exec.Command("carrick-duo", args...)
		cmd.Dir = dir
		return carricktest.StartOnTerminal(t, cmd, "A=B")
	}
	for _, command := range [][]string{
		{"apply", "guest.yaml"}, {"undo", "guest.yaml"}, {"export", "guest.yaml", "exported"},
	} {
		p := start(command...)
		p.Wait(`Is this the key of the house's admin\? \[y/N\]`)
		p.Types("\r")
		p.Wait(`not confirmed: nothing was changed`)
		if code := p.Leaves(); code != 2 {
			t.Errorf("%s: exit code %d", command[0], code)
		}
		confirmedIn(t, dir, false)
	}
	p := start("apply", "guest.yaml")
	p.Wait(`Is this the key of the house's admin\? \[y/N\]`)
	p.Types("y\r")
	p.Wait(`Apply these changes\? \[y/N\]`)
	confirmedIn(t, dir, true)
	p.Types("y\r")
	if code := p.Leaves(); code != 5 {
		t.Errorf("exit code %d", code)
	}
	if out, said, code := run("undo", "--yes", "guest.yaml"); code != 0 {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
}

// The line-based wizard asks the same questions, one after the other.
func TestHandingOverInLines(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := duoFolder(t)
	cmd := exec.Command("carrick-duo", "house.yaml")
	cmd.Dir, cmd.Env = dir, append(carricktest.OwnEnvironment(dir), "ACCESSIBLE=1")
	cmd.Stdin = strings.NewReader("h\nmine.facts\n" + key.Recipient().String() + "\nh\nguest.yaml\n\nh\n\nmilan\nq\n")
	out, said, code := carricktest.Finish(t, cmd)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"Wrote mine.facts", "encrypted for age1",
		"Next, the guest's admin adds your file to their link file and runs: carrick apply LINK --side guest",
		"guest.yaml: already exists and is not a facts file of this link", "milan is not a valid recipient",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if strings.Contains(out+said, "sesame") {
		t.Error("it says the secret")
	}
	if t.Failed() {
		t.Logf("%s\n%s", out, said)
	}
}
