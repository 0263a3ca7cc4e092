package carricktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// OnTrial starts carrick with the guide trial on a terminal.
func OnTrial(t *testing.T, args ...string) *Terminal {
	t.Helper()
	return OnTrialWith(t, "TRIAL=1", args...)
}

// OnTrialWith is like OnTrial, but mark is in the environment of carrick.
func OnTrialWith(t *testing.T, mark string, args ...string) *Terminal {
	t.Helper()
	return StartOnTerminal(t, TrialCommand(t, args...), mark)
}

// TrialCommand returns a command that runs carrick with the guide trial. Its directory contains a link file.
func TrialCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("carrick-trial", args...)
	cmd.Dir = t.TempDir()
	for path, text := range map[string]string{
		"desk/.keep": "", "shelf/etc/.keep": "", "token": TrialToken + "\n",
		"link.yaml": "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: a}\nguide: trial\nlocal: {host: {root: " +
			"desk}}\nremote: {host: {root: shelf}}\n",
	} {
		path = filepath.Join(cmd.Dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = OwnEnvironment(cmd.Dir)
	return cmd
}

// Approve approves the device login of the guide trial, as a user would do in a browser.
func (p *Terminal) Approve() {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.Cmd.Dir, "desk/approved"), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// UntilSilent waits until the terminal no longer echoes input.
func (p *Terminal) UntilSilent() {
	p.t.Helper()
	for end := time.Now().Add(Quick); *p.State() == *p.Modes; {
		if time.Now().After(end) {
			p.t.Fatal("the terminal would show the input")
		}
	}
}

// Wrote reports whether the output of carrick contains text.
func (p *Terminal) Wrote(text string) bool {
	return strings.Contains(p.Printed(), text)
}
