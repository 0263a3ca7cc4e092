package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/demo"
)

// Completion gets the names of faults from the sandbox program, which starts nothing for that. If that program is too
// old or does not exist, completion offers nothing and prints nothing.
func TestFaultsAreCompleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "carrick")
	carricktest.Copy(t, carricktest.Program(t), path)
	const nothing = ":4\n"
	for script, want := range map[string]string{
		"": nothing,
		"#!/bin/sh\necho \"flag provided but not defined\" >&2\nexit 1\n": nothing,
		"#!/bin/sh\necho '{\"ready\":true}'\n":                            nothing,
		"#!/bin/sh\ntest \"$*\" = '--faults liqo' && echo '" + twoFaults + "'\n": "old-token\tthe token has ended\n" +
			nothing,
	} {
		box := filepath.Join(dir, demo.Program)
		_ = os.Remove(box)
		if script != "" {
			if err := os.WriteFile(box, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(path, "__complete", "demo", "liqo", "--fault", "o")
		cmd.Dir, cmd.Env = dir, carricktest.OwnEnvironment(dir)
		if out, said, code := carricktest.Finish(t, cmd); out != want || code != 0 {
			t.Errorf("%q: exit code %d, %q, %q", script, code, out, said)
		}
	}
}
