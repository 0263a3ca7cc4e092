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

// OnTrialWith is like OnTrial, with the variable mark in the environment.
func OnTrialWith(t *testing.T, mark string, args ...string) *Terminal {
	t.Helper()
	return StartOnTerminal(t, TrialCommand(t, args...), mark)
}

// TrialCommand returns carrick with the guide trial, in a folder with a link.
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

// Approve approves the device login of the trial, as a user does in a browser.
func (p *Terminal) Approve() {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.Cmd.Dir, "desk/approved"), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// UntilSilent returns when the terminal no longer echoes input.
func (p *Terminal) UntilSilent() {
	p.t.Helper()
	for end := time.Now().Add(Quick); *p.State() == *p.Modes; {
		if time.Now().After(end) {
			p.t.Fatal("what is typed would be shown")
		}
	}
}

// Wrote reports whether carrick has written a text.
func (p *Terminal) Wrote(text string) bool {
	return strings.Contains(p.Printed(), text)
}
