package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/cmd/carrick/exit"
)

// onTrial starts carrick with the guide trial on a terminal.
func onTrial(t *testing.T, args ...string) *terminal {
	t.Helper()
	return onTrialWith(t, "TRIAL=1", args...)
}

func onTrialWith(t *testing.T, mark string, args ...string) *terminal {
	t.Helper()
	return startOnTerminal(t, trialCommand(t, args...), mark)
}

// trialCommand is carrick with the guide trial, in a folder with a link.
func trialCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("carrick-trial", args...)
	cmd.Dir = t.TempDir()
	for path, text := range map[string]string{
		"desk/.keep": "", "shelf/etc/.keep": "", "token": trialToken + "\n",
		"link.yaml": "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: a}\nguide: trial\nlocal: {host: {root: desk}}\nremote: {host: {root: shelf}}\n",
	} {
		path = filepath.Join(cmd.Dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = ownEnvironment(cmd.Dir)
	return cmd
}

// approve is what a person does in a browser.
func (p *terminal) approve() {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.cmd.Dir, "desk/approved"), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// untilSilent returns when the terminal no longer shows what is typed.
func (p *terminal) untilSilent() {
	p.t.Helper()
	for end := time.Now().Add(quick); *p.state() == *p.modes; {
		if time.Now().After(end) {
			p.t.Fatal("what is typed would be shown")
		}
	}
}

func (p *terminal) wrote(text string) bool {
	return strings.Contains(p.printed(), text)
}

// A login that waits for a person shows where to go for as long as it waits.
func TestLoginInTheWizard(t *testing.T) {
	t.Parallel()
	p := onTrial(t, "link.yaml")
	p.wait(`there is no token`)
	p.types("a")
	p.wait(`login at the shelf`)
	p.types("y")
	p.wait(`user_code=WDJB-MJHT(.|\n)*type the code\s+WDJB-MJHT(.|\n)*y copy the address`)
	p.types("y")
	p.wait(`copied: https://login.example.org/realms/Trial/device\?user_code=WDJB-MJHT`)
	p.approve()
	p.wait(`applied Login: 1 change`)
	p.wait(`the shelf takes the token +✓ ok`)
	if strings.Contains(p.text(), "WDJB-MJHT") {
		t.Errorf("the code still stands there:\n%s", p.text())
	}
	p.types("q")
	if code := p.leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if p.wrote(trialToken) {
		t.Error("the token was shown")
	}
}

// apply on a terminal waits for that person, too.
func TestLoginWithoutTheWizard(t *testing.T) {
	t.Parallel()
	p := onTrial(t, "apply", "link.yaml", "--step", "login")
	p.wait(`Do this\? \[y/N\]`)
	p.types("y\n")
	p.waitPrinted(`type the code\s+WDJB-MJHT`)
	p.approve()
	if code := p.leaves(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.text())
	}
	if p.wrote("\x1b") {
		t.Error("it wrote an escape sequence")
	}
}

// A secret that is typed is not shown, and ctrl+c gives the echo back.
func TestASecretIsTyped(t *testing.T) {
	t.Parallel()
	p := onTrial(t, "check", "link.yaml", "--only", "token-works", "--secret", "trial.token=-")
	p.wait(`Token \(not shown\):`)
	p.untilSilent()
	p.types(trialToken + "\n")
	if code := p.leaves(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.text())
	}
	p.wait(`token taken`)
	if p.wrote(trialToken) {
		t.Error("the token was shown")
	}

	p = onTrial(t, "check", "link.yaml", "--secret", "trial.token=-")
	p.wait(`Token \(not shown\):`)
	p.untilSilent()
	p.types("\x03")
	if code := p.leaves(); code != exit.Interrupted {
		t.Errorf("exit code %d, not %d", code, exit.Interrupted)
	}
	if *p.state() != *p.modes {
		t.Error("the terminal is not as it was")
	}
}

// A secret from a file is there when the wizard opens.
func TestASecretForTheWizard(t *testing.T) {
	t.Parallel()
	p := onTrial(t, "link.yaml", "--secret", "trial.token=@token")
	p.wait(`there is no note`)
	p.types("1")
	p.wait(`token taken`)
	p.types("q")
	if code := p.leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, args := range [][]string{
		{"link.yaml", "--secret", "trial.token=-"},
		{"link.yaml", "--secret", "trial.port=@token"},
		{"--guide", "trial", "--secret", "nope=@token"},
		{"--secret", "nope=@token"},
	} {
		p := onTrial(t, args...)
		if code := p.leaves(); code != exit.Usage || p.wrote("\x1b[?1049h") {
			t.Errorf("%q: exit code %d:\n%s", args, code, p.text())
		}
	}
}

// A long answer is written in the user's own editor, which has the terminal as
// any program has it.
func TestALongAnswerInAnEditor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	editor := filepath.Join(dir, "editor")
	const script = `#!/bin/sh
test "$1" = --wait || exit 9
printf "editing, what to add? "; read -r line
test "$line" = fail && exit 3
ls -l "$2" | cut -c1-10 >>"${0%/*}/modes"
echo "$line" >>"$2"
`
	if err := os.WriteFile(editor, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	drafts := t.TempDir()
	cmd := trialCommand(t, "link.yaml", "--secret", "trial.token=@token")
	p := startOnTerminal(t, cmd, "VISUAL="+editor+" --wait", "TMPDIR="+drafts)
	p.wait(`there is no note`)
	p.types("e")
	p.wait(`(?s)# who may read.*open: true.*ctrl\+e editor`)
	p.types("\x05")
	p.wait(`editing, what to add\?`)
	p.types("fail\n")
	p.wait(`the text is as it was: .*exit status 3`)
	p.types("\x05")
	p.wait(`editing, what to add\?`)
	p.types("closed: true\n")
	p.wait(`Rules: line 3: closed is no rule`)
	p.wait(`closed: true`)
	p.types("\x7f\x15open2: 1\r")
	p.wait(`open2: 1`)
	p.types("\x05")
	p.wait(`editing, what to add\?`)
	p.types("x: 1\n")
	p.wait(`(?s)x: 1.*ctrl\+e editor`) // on carrick's screen again, not the echo of what was typed
	p.types("\x13")
	p.wait(`1 answer saved`)
	p.types("q")
	if code := p.leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if *p.state() != *p.modes {
		t.Error("the terminal is not as it was")
	}
	const saved = "answers:\n  trial.rules: |\n    # who may read\n    open: true\n    open2: 1\n    x: 1\n"
	if text, err := readFile(filepath.Join(p.cmd.Dir, "link.yaml")); err != nil || !strings.Contains(text, saved) {
		t.Errorf("%v, saved:\n%s", err, text)
	}
	if modes, _ := readFile(filepath.Join(dir, "modes")); modes != strings.Repeat("-rw-------\n", 2) {
		t.Errorf("the drafts had the modes %q", modes)
	}
	if left, _ := filepath.Glob(filepath.Join(drafts, "*")); len(left) > 0 {
		t.Errorf("drafts are left: %q", left)
	}
}
