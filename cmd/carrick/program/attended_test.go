package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/exit"
)

// A login that waits for a person shows the address to open for as long as it waits.
func TestLoginInTheWizard(t *testing.T) {
	t.Parallel()
	p := carricktest.OnTrial(t, "link.yaml")
	p.Wait(`the token is not set`)
	p.Types("a")
	p.Wait(`login at the shelf`)
	p.Types("y")
	p.Wait(`user_code=WDJB-MJHT(.|\n)*type the code\s+WDJB-MJHT(.|\n)*c copy the address`)
	p.Types("c")
	p.Wait(`copied: https://login.example.org/realms/Trial/device\?user_code=WDJB-MJHT`)
	p.Approve()
	p.Wait(`applied Login: 1 change`)
	p.Wait(`The shelf accepts the token[ ┄]+✓ ok`)
	if strings.Contains(p.Text(), "WDJB-MJHT") {
		t.Errorf("the code still stands there:\n%s", p.Text())
	}
	p.Types("q")
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if p.Wrote(carricktest.TrialToken) {
		t.Error("the token was shown")
	}
}

// apply on a terminal waits for that person, too.
func TestLoginWithoutTheWizard(t *testing.T) {
	t.Parallel()
	p := carricktest.OnTrial(t, "apply", "link.yaml", "--step", "login")
	p.Wait(`Apply these changes\? \[y/N\]`)
	p.Types("y\n")
	p.WaitPrinted(`type the code\s+WDJB-MJHT`)
	p.Approve()
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.Text())
	}
	if p.Wrote("\x1b") {
		t.Error("it wrote an escape sequence")
	}
}

// A secret that is typed is not shown, and ctrl+c gives the echo back.
func TestASecretIsTyped(t *testing.T) {
	t.Parallel()
	p := carricktest.OnTrial(t, "check", "link.yaml", "--only", "token-works", "--secret", "trial.token=-")
	p.Wait(`Token \(not shown\):`)
	p.UntilSilent()
	p.Types(carricktest.TrialToken + "\n")
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.Text())
	}
	p.Wait(`the\s+shelf\s+accepts`)
	if p.Wrote(carricktest.TrialToken) {
		t.Error("the token was shown")
	}

	p = carricktest.OnTrial(t, "check", "link.yaml", "--secret", "trial.token=-")
	p.Wait(`Token \(not shown\):`)
	p.UntilSilent()
	p.Types("\x03")
	if code := p.Leaves(); code != exit.Interrupted {
		t.Errorf("exit code %d, not %d", code, exit.Interrupted)
	}
	if *p.State() != *p.Modes {
		t.Error("the terminal is not as it was")
	}
}

// A secret from a file is there when the wizard opens.
func TestASecretForTheWizard(t *testing.T) {
	t.Parallel()
	p := carricktest.OnTrial(t, "link.yaml", "--secret", "trial.token=@token")
	p.Wait(`/etc/note\.conf does not exist`)
	p.Types("1")
	p.Wait(`the\s+shelf\s+accepts`)
	p.Types("q")
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, args := range [][]string{
		{"link.yaml", "--secret", "trial.token=-"},
		{"link.yaml", "--secret", "trial.port=@token"},
		{"--guide", "trial", "--secret", "nope=@token"},
		{"--secret", "nope=@token"},
	} {
		p := carricktest.OnTrial(t, args...)
		if code := p.Leaves(); code != exit.Usage || p.Wrote("\x1b[?1049h") {
			t.Errorf("%q: exit code %d:\n%s", args, code, p.Text())
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
	cmd := carricktest.TrialCommand(t, "link.yaml", "--secret", "trial.token=@token")
	p := carricktest.StartOnTerminal(t, cmd, "VISUAL="+editor+" --wait", "TMPDIR="+drafts)
	p.Wait(`/etc/note\.conf does not exist`)
	p.Types("e")
	p.Wait(`(?s)# who may read.*open: true.*ctrl\+e editor`)
	p.Types("\x05")
	p.Wait(`editing, what to add\?`)
	p.Types("fail\n")
	p.Wait(`the text is unchanged: .*exit status 3`)
	p.Types("\x05")
	p.Wait(`editing, what to add\?`)
	p.Types("closed: true\n")
	p.Wait(`Rules: line 3: closed is not a rule`)
	p.Wait(`closed: true`)
	p.Types("\x7f\x15open2: 1\r")
	p.Wait(`open2: 1`)
	p.Types("\x05")
	p.Wait(`editing, what to add\?`)
	p.Types("x: 1\n")
	p.Wait(`(?s)x: 1.*ctrl\+e editor`) // on carrick's screen again, not the echo of what was typed
	p.Types("\x13")
	p.Wait(`1 answer saved`)
	p.Types("q")
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if *p.State() != *p.Modes {
		t.Error("the terminal is not as it was")
	}
	const saved = "answers:\n  trial.rules: |\n    # who may read\n    open: true\n    open2: 1\n    x: 1\n"
	if text, err := carricktest.ReadFile(filepath.Join(p.Cmd.Dir, "link.yaml")); err != nil ||
		!strings.Contains(text, saved) {
		t.Errorf("%v, saved:\n%s", err, text)
	}
	if modes, _ := carricktest.ReadFile(filepath.Join(dir, "modes")); modes != strings.Repeat("-rw-------\n", 2) {
		t.Errorf("the drafts had the modes %q", modes)
	}
	if left, _ := filepath.Glob(filepath.Join(drafts, "*")); len(left) > 0 {
		t.Errorf("drafts are left: %q", left)
	}
}
