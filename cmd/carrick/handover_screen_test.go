package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

const duoLink = "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: milan-rome}\nguide: duo\n"

// duoFolder is a folder with both admins' link files, the house's file of facts, and
// what its sides hold.
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
		cmd.Dir, cmd.Env = dir, ownEnvironment(dir)
		return finish(t, cmd)
	}
	if _, said, code := run("handover", "house.yaml", "-o", "theirs.facts"); code != 0 {
		t.Fatal(said)
	}
	return dir, run
}

// By keys alone: a side is handed over, and what to ask of the other admin is said; a
// newer file in the place of the old one is read at once, one that can't be used is
// unknown.
func TestHandingOverByKeys(t *testing.T) {
	t.Parallel()
	dir, run := duoFolder(t)
	cmd := exec.Command("carrick-duo", "guest.yaml")
	cmd.Dir = dir
	p := startOnTerminal(t, cmd, "A=B")
	p.wait(`the guest knows the house +✗ FAIL`)
	p.types("h")
	p.wait(`Hand over the guest`)
	p.wait(`secrets for +nobody`)
	p.wait(`carrick handover guest.yaml`)
	p.wait(`the house's admin, with your file in their link file`)
	p.types("\r")
	p.types("milan")
	p.types("\r")
	p.wait(`milan is no recipient`)
	p.types("\x15")
	p.types("\r")
	p.wait(`wrote milan-rome-guest.facts`)
	p.wait(`fingerprint`)
	if _, err := os.Stat(filepath.Join(dir, "milan-rome-guest.facts")); err != nil {
		t.Error(err)
	}
	p.types("\r")
	p.wait(`a apply`)

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
	p.wait(`[1-9] unknown`)
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
	p.wait(`[0-9] ok · [0-9] skipped`)
	p.types("q")
	if code := p.leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// In lines of text: the same questions, one after the other.
func TestHandingOverInLines(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := duoFolder(t)
	cmd := exec.Command("carrick-duo", "house.yaml")
	cmd.Dir, cmd.Env = dir, append(ownEnvironment(dir), "ACCESSIBLE=1")
	cmd.Stdin = strings.NewReader("h\nmine.facts\n" + key.Recipient().String() + "\nh\nguest.yaml\n\nh\n\nmilan\nq\n")
	out, said, code := finish(t, cmd)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"Wrote mine.facts", "sealed for age1", "Next, the guest's admin, with your file in their link file: carrick apply LINK --side guest",
		"guest.yaml: is there already and is no file of facts of this link", "milan is no recipient",
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
