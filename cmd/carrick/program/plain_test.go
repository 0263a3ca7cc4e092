package program

import (
	"io"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest/cases"
	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/guides"
)

// Without a terminal no command writes an escape sequence or a stack trace, even if colors are forced.
func TestVerifyNoCommandWritesEscapeSequences(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "hostile")
	lines := [][]string{{}, {"--help"}, {"link.yaml"}, {"--nonsense"}, {"help", "check"}}
	for _, c := range commands.Root(commands.Program{Guides: guides.All()}, nil, io.Discard, io.Discard).Commands() {
		lines = append(
			lines, []string{c.Name(), "--help"}, []string{c.Name()}, []string{c.Name(), "renku"},
			[]string{c.Name(), "link.yaml", "--color", "always"},
		)
	}
	if len(lines) < 20 || !slices.ContainsFunc(lines, func(l []string) bool { return slices.Contains(l, "apply") }) {
		t.Fatalf("these are not all commands: %q", lines)
	}
	for _, args := range lines {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			cmd := carricktest.Command(t, args...)
			cmd.Env = append(cmd.Env, "TERM=xterm-256color", "CLICOLOR_FORCE=1", "COLORTERM=truecolor")
			carricktest.Login{Server: carricktest.NoServer, User: "token: t"}.Write(t, cmd.Dir)
			out, said, code := carricktest.Finish(t, cmd)
			for _, text := range []string{out, said} {
				if bad := carricktest.Unfit(text); bad != "" {
					t.Errorf("%s, exit code %d: %q", bad, code, text)
				}
			}
		})
	}
}
