package stepstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"carrick/steps"
)

// wanted returns the verdicts in the want sections of the states in dir. For each check and status, it lists the
// states. Play verifies these sections.
func wanted(t *testing.T, dir string) map[string]map[steps.Status][]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no states in %s", dir)
	}
	out := map[string]map[steps.Status][]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := state{archive: txtar.Parse(data)}
		want, _ := s.section("want")
		for _, line := range lines(want) {
			if strings.HasPrefix(line, strings.TrimSpace(fixPrefix)) {
				continue
			}
			verdict, _, _ := strings.Cut(line, ": ")
			words := strings.Fields(verdict)
			var status steps.Status
			if len(words) != 3 || status.UnmarshalText([]byte(words[2])) != nil {
				t.Fatalf("%s: want: %q is not SIDE CHECK STATUS", path, line)
			}
			if out[words[1]] == nil {
				out[words[1]] = map[steps.Status][]string{}
			}
			name := strings.TrimSuffix(filepath.Base(path), ".txtar")
			out[words[1]][status] = append(out[words[1]][status], name)
		}
	}
	return out
}
