package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/exit"
)

// The wizard runs in lines if the user requests that, on a terminal without cursor movement, and without a terminal.
func TestTheWizardSpeaksInLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mark string
		args []string
	}{
		"by its flag":     {"TRIAL=1", []string{"--accessible", "link.yaml"}},
		"by environment":  {"ACCESSIBLE=1", []string{"link.yaml"}},
		"plain terminals": {"TERM=dumb", []string{"link.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := carricktest.OnTrialWith(t, c.mark, c.args...)
			p.Wait(`Step 1, Login:`)
			p.Types("q\n")
			if code := p.Leaves(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, p.Text())
			}
			if p.Wrote("\x1b") {
				t.Error("it wrote an escape sequence")
			}
		})
	}
}

// On a terminal, a secret is typed without echo, a login shows the address to open, and an editor owns the terminal.
func TestLinesOnATerminal(t *testing.T) {
	t.Parallel()
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\necho 'added: true' >>\"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := carricktest.OnTrialWith(t, "VISUAL="+editor, "--accessible", "link.yaml")
	p.Wait(`Step 1, Login:`)
	p.Types("a\n")
	p.Wait(`Apply this change\? \[y/N\]`)
	p.Types("y\n")
	p.WaitPrinted(`(?s)Your turn:.*user_code=WDJB-MJHT\r?\n?.*type the\s+code WDJB-MJHT`)
	p.Approve()
	p.Wait(`ok: The shelf accepts the token`)
	p.Types("e\n")
	p.Wait(`Already given`)
	p.UntilSilent()
	p.Types(carricktest.TrialToken + "\n")
	p.Wait(`carrick keeps the answer until you quit`)
	p.Types("b\nb\n2\n")
	p.Wait(`Step 2, Write:`)
	p.Types("e\n")
	p.Wait(`Text, s reads it`)
	p.Types("e\n")
	p.Wait(`Saved\.`)
	p.Types("\x04") // the end of what is typed leaves
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.Text())
	}
	if p.Wrote(carricktest.TrialToken) || p.Wrote("\x1b") {
		t.Error("the token was shown, or an escape sequence written")
	}
	if *p.State() != *p.Modes {
		t.Error("the terminal is not as it was")
	}
	if text, err := carricktest.ReadFile(filepath.Join(p.Cmd.Dir, "link.yaml")); err != nil ||
		!strings.Contains(text, "added: true") {
		t.Errorf("%v, saved:\n%s", err, text)
	}
}

// Ctrl+c cancels a running operation. If nothing is running, it exits the wizard. If a secret was being typed, the echo
// is on again.
func TestLinesAreInterrupted(t *testing.T) {
	t.Parallel()
	p := carricktest.OnTrial(t, "--accessible", "link.yaml")
	p.Wait(`Step 1, Login:`)
	p.Types("a\ny\n")
	p.WaitPrinted(`Your turn:`)
	p.Types("\x03")
	p.Wait(`Stopped by you: nothing was changed\.`)
	p.Types("e\n")
	p.Wait(`Token, Enter keeps it:`)
	p.UntilSilent()
	p.Types("\x03")
	if code := p.Leaves(); code != exit.Interrupted {
		t.Errorf("exit code %d, not %d:\n%s", code, exit.Interrupted, p.Text())
	}
	if *p.State() != *p.Modes {
		t.Error("the terminal is not as it was")
	}
}

// With pipes, each line is an answer. At the end of the input, the wizard names the command that needs no input. A
// login is rejected if no one reads along, and waits if lines were requested.
func TestLinesFromAPipe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		input string
		args  []string
		code  int
		says  []string
		warns string
	}{
		{
			"2\na\ny\nu\ny\nq\n", nil, 0,
			[]string{"step 2 of 2, shelf: created /etc/note.conf.", "shelf: ok: The note exists.", "deleted /etc/note.conf."},
			"",
		},
		{
			"2\na\n", nil, exit.Usage,
			[]string{"Apply this change? [y/N]"},
			"the input ended at \"Apply this change? [y/N]\"; without questions: carrick apply link.yaml " +
				"--step write --yes\n",
		},
		{"2\na\ny", nil, exit.Usage, []string{"Apply this change? [y/N]"}, "the input ended at"},
		{"a\ny\nq\n", nil, 0, []string{"no terminal to log in on; give a token: --secret trial.token=@FILE"}, ""},
		{
			"e\n\n" + "no-number-4711\n\n\nq\n", nil, 0,
			[]string{"Invalid answer: the input is not of type number."},
			"",
		},
		{"q\n", []string{"--ascii", "--color", "always"}, 0, []string{"Step 1, Login"}, ""},
	} {
		cmd := carricktest.TrialCommand(t, append([]string{"link.yaml"}, c.args...)...)
		cmd.Env = append(cmd.Env, "CLICOLOR_FORCE=1", "TERM=xterm-256color")
		cmd.Stdin = strings.NewReader(c.input)
		out, said, code := carricktest.Finish(t, cmd)
		if code != c.code || !strings.Contains(said, c.warns) || (c.warns == "") != (said == "") ||
			carricktest.Unfit(out) != "" {
			t.Errorf("%q: exit code %d, %q on standard error:\n%s", c.input, code, said, out)
		}
		for _, want := range c.says {
			if !strings.Contains(out, want) {
				t.Errorf("%q: it did not say %q:\n%s", c.input, want, out)
			}
		}
		if strings.Contains(out+said, "4711") {
			t.Errorf("%q: the secret was said:\n%s", c.input, out)
		}
	}
}

// If lines were requested, a person reads them. So a login waits for that person, even with a pipe, and prints its
// address on a separate line.
func TestALoginInLinesThatWereAskedFor(t *testing.T) {
	t.Parallel()
	cmd := carricktest.TrialCommand(t, "--accessible", "link.yaml")
	if err := os.WriteFile(filepath.Join(cmd.Dir, "desk/approved"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader("a\ny\nq\n")
	out, said, code := carricktest.Finish(t, cmd)
	if code != 0 || said != "" || !strings.Contains(out, "ok: The shelf accepts the token") {
		t.Errorf("exit code %d, %q on standard error:\n%s", code, said, out)
	}
	if !strings.Contains(out, "\nhttps://login.example.org/realms/Trial/device?user_code=WDJB-MJHT\n") {
		t.Errorf("the address is on no line of its own:\n%s", out)
	}
}

// If the reader of the output exits early, the wizard ends, but not a change in progress.
func TestAReaderOfLinesWhoHasLeft(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	cmd := carricktest.TrialCommand(t, "link.yaml")
	cmd.Stdin = strings.NewReader("2\na\ny\nq\n")
	cmd.Stdout = writer
	if err := cmd.Run(); err == nil {
		t.Error("exit code 0, and nobody has heard a word")
	}
	if _, err := os.Stat(filepath.Join(cmd.Dir, "shelf/etc/note.conf")); err == nil {
		t.Error("something was changed that nobody could read of")
	}
}
