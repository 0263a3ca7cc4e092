package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"carrick/cmd/carrick/exit"
)

// walkedWithin is how long the walk of a whole guide may take at the fastest
// pace.
const walkedWithin = 20 * time.Minute

// reaches waits longer than wait does.
func (p *terminal) reaches(text string) {
	p.t.Helper()
	late := time.NewTimer(walkedWithin)
	defer late.Stop()
	for !strings.Contains(p.text(), text) {
		select {
		case <-p.changed:
		case <-p.ended:
			p.t.Fatalf("carrick has ended:\n%s", p.text())
		case <-late.C:
			p.t.Fatalf("the screen never showed %q:\n%s", text, p.text())
		}
	}
}

// A peering is made, all green, without a key of a person's.
func liqoByAutoplay(t *testing.T) {
	p := demoLent(t, "liqo", "--autoplay", "--pace", "100")
	p.reaches("That was the walk.")
	p.wait(`✓ everything is as it should be|! nothing fails, and `)
	p.types("\x1b[D")
	p.wait(`(?s)` + throughLiqo.on(9) + `.*` + allGreen)
	p.quits()
}

func TestAutoplayFlagsThatAreRefused(t *testing.T) {
	t.Parallel()
	path, told := withSandbox(t, twoFaults)
	for want, args := range map[string][]string{
		"--pace says how to walk: add --autoplay":      {"--pace", "slow"},
		"--undo says how to walk: add --autoplay":      {"--undo"},
		"--list and --autoplay exclude each other":     {"--list", "--autoplay"},
		`--pace "hasty": want slow, normal, fast, or`:  {"--autoplay", "--pace", "hasty"},
		`--pace "0": want slow, normal, fast, or a fa`: {"--autoplay", "--pace", "0"},
		`--pace "NaN": want slow, normal, fast, or a `: {"--autoplay", "--pace", "NaN"},
		"--autoplay shows the screen":                  {"--autoplay", "--pace", "1.5"},
	} {
		out, said, code := finish(t, demoCommand(t, path, args...))
		if out != "" || code != exit.Usage || !strings.Contains(said, want) {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out, said)
		}
	}
	if text, err := readFile(told); !os.IsNotExist(err) {
		t.Errorf("the sandbox was told %q, %v", text, err)
	}
}
