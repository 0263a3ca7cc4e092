package program

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"carrick/cmd/carrick/carricktest"
)

// A terminal that never replies must not delay commands without a screen. Such commands send no query.
func TestPlainCommandsAskTheTerminalNothing(t *testing.T) {
	t.Parallel()
	path := carricktest.Program(t)
	for _, args := range [][]string{
		{"--help"},
		{"version"},
		{"check", "--help"},
		{"guides"},
		{"explain", "role-binding"},
		{"check", "missing.yaml"},
		{"missing.yaml"},
		{"--nonsense"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), carricktest.Quick)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, args...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(carricktest.OwnEnvironment(cmd.Dir), "TERM=xterm-256color")
			ours, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: carricktest.Rows, Cols: carricktest.Columns})
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			out, _ := io.ReadAll(ours) // a terminal whose program has left is an error on some systems
			_ = cmd.Wait()
			if ctx.Err() != nil {
				t.Fatalf("it had not ended after %s: %q", carricktest.Quick, out)
			}
			if len(out) == 0 || strings.Contains(string(out), "\x1b") {
				t.Fatalf("it wrote %q", out)
			}
		})
	}
}
