package toy

import (
	"fmt"
	"strings"
	"testing"

	"carrick/cmd/carrick/carricktest"
	"carrick/steps"
)

// The input comes from a pipe: it applies the guide and undoes it.
func TestToyInLines(t *testing.T) {
	t.Parallel()
	y := newToy(t)
	cmd := y.command("--accessible", y.link(nil))
	cmd.Stdin = strings.NewReader(inLines(throughToy, nil))
	out, said, code := carricktest.Finish(t, cmd)
	heard(t, throughToy, out, said, code, greenInLines, `(?m)^Not all checks pass: `)
	for _, want := range []string{
		"hub: sandbox-local", "spoke: sandbox-remote", "Fix: f 1 runs the fix: Create the namespace.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it did not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out+said, "eyJ") {
		t.Errorf("it said a token:\n%s", out)
	}
	y.nothingLeft()
}

// The same test on a terminal without cursor movement. Ctrl+c also stops an apply there.
func TestToyOnAPlainTerminal(t *testing.T) {
	t.Parallel()
	y := newToy(t)
	p := carricktest.StartOnTerminal(
		t, y.command(y.link(steps.Given{"account.approval": true})), y.kubeconfig, "TERM=dumb",
	)
	apply := func(step int) {
		p.Types(fmt.Sprintf("%d\n", step))
		p.Wait(fmt.Sprintf(`(?s)Choices: .*Step %d, %s:\s*$`, step, throughToy.Titles[step]))
		p.Types("a\n")
		p.Wait(`Apply (this|these [0-9]+) changes?\?\s+\[y/N\]\s*$`)
		p.Types("y\n")
	}
	p.Wait(`Step 2, Account:`)
	apply(2)
	p.Wait(`created Secret toy/hub-token\.`)
	p.Types("\x03")
	p.Wait(`Stopped by you after 4 changes\. Completed changes are kept`)
	y.approve()
	apply(3)
	p.Wait(`(?s)Done: .*In this step: .*Step 3, Register:\s*$`)
	p.Types("s\n")
	p.Wait(`All checks pass|In total|Summary:\s*$`)
	p.Types("u\n")
	p.Wait(`Undo these [0-9]+ resources\? \[y/N\]\s*$`)
	p.Types("y\n")
	p.Wait(`(?s)Step 3, Register: .*Summary:\s*$`)
	p.Types("q\n")
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.Text())
	}
	if !p.Wrote("All checks pass: ") || !p.Wrote("Not all checks pass: ") || p.Wrote("\x1b") || p.Wrote("eyJ") {
		t.Errorf("it was not green, not undone, or wrote an escape sequence or a token:\n%s", p.Text())
	}
	y.nothingLeft()
}
