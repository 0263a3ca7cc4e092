package program

import (
	"os"
	"strings"
	"testing"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/exit"
)

func TestAutoplayFlagsThatAreRefused(t *testing.T) {
	t.Parallel()
	path, told := withSandbox(t, twoFaults)
	for want, args := range map[string][]string{
		"--pace requires --autoplay":                      {"--pace", "slow"},
		"--undo requires --autoplay":                      {"--undo"},
		"--list and --autoplay cannot be used together":   {"--list", "--autoplay"},
		`--pace "hasty": must be slow, normal, fast, or`:  {"--autoplay", "--pace", "hasty"},
		`--pace "0": must be slow, normal, fast, or a fa`: {"--autoplay", "--pace", "0"},
		`--pace "NaN": must be slow, normal, fast, or a `: {"--autoplay", "--pace", "NaN"},
		"--autoplay requires the screen":                  {"--autoplay", "--pace", "1.5"},
	} {
		out, said, code := carricktest.Finish(t, demoCommand(t, path, args...))
		if out != "" || code != exit.Usage || !strings.Contains(said, want) {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out, said)
		}
	}
	if text, err := carricktest.ReadFile(told); !os.IsNotExist(err) {
		t.Errorf("the sandbox was told %q, %v", text, err)
	}
}
