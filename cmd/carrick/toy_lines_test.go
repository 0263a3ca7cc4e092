package main

import (
	"fmt"
	"strings"
	"testing"

	"carrick/steps"
)

// There and back by answers that come from a pipe.
func TestToyInLines(t *testing.T) {
	t.Parallel()
	y := newToy(t)
	cmd := y.command("--accessible", y.link(nil))
	cmd.Stdin = strings.NewReader(inLines(throughToy, nil))
	out, said, code := finish(t, cmd)
	heard(t, throughToy, out, said, code, greenInLines, `(?m)^Not all is green: `)
	for _, want := range []string{"hub: sandbox-local", "spoke: sandbox-remote", "Fix: f 1 does it: Create the namespace."} {
		if !strings.Contains(out, want) {
			t.Errorf("it did not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out+said, "eyJ") {
		t.Errorf("it said a token:\n%s", out)
	}
	y.nothingLeft()
}

// The same on a terminal that can do nothing but lines. Ctrl+c stops an apply there, too.
func TestToyOnAPlainTerminal(t *testing.T) {
	t.Parallel()
	y := newToy(t)
	p := startOnTerminal(t, y.command(y.link(steps.Given{"account.approval": true})), y.kubeconfig, "TERM=dumb")
	apply := func(step int) {
		p.types(fmt.Sprintf("%d\n", step))
		p.wait(fmt.Sprintf(`(?s)Choices: .*Step %d, %s:\s*$`, step, throughToy.titles[step]))
		p.types("a\n")
		p.wait(`Apply (this|these [0-9]+) changes?\?\s+\[y/N\]\s*$`)
		p.types("y\n")
	}
	p.wait(`Step 2, Account:`)
	apply(2)
	p.wait(`created Secret toy/hub-token\.`)
	p.types("\x03")
	p.wait(`Stopped by you after 4 changes\. What was done stays`)
	y.approve()
	apply(3)
	p.wait(`(?s)Done: .*In this step: .*Step 3, Register:\s*$`)
	p.types("s\n")
	p.wait(`All is green|All in all|Summary:\s*$`)
	p.types("u\n")
	p.wait(`Take back these [0-9]+ things\? \[y/N\]\s*$`)
	p.types("y\n")
	p.wait(`(?s)Step 3, Register: .*Summary:\s*$`)
	p.types("q\n")
	if code := p.leaves(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.text())
	}
	if !p.wrote("All is green: ") || !p.wrote("Not all is green: ") || p.wrote("\x1b") || p.wrote("eyJ") {
		t.Errorf("it was not green, not undone, or wrote an escape sequence or a token:\n%s", p.text())
	}
	y.nothingLeft()
}
