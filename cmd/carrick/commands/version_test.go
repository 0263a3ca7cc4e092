package commands

import "testing"

func TestVersionSaysItsCommit(t *testing.T) {
	for want, v := range map[string]versionDoc{
		"carrick v1 (commit unknown) go1 linux/amd64": {Version: "v1", Go: "go1", Platform: "linux/amd64"},
		"carrick v1 (commit abc) go1 linux/amd64": {
			Version: "v1", Go: "go1", Platform: "linux/amd64", Commit: "abc",
		},
		"carrick v1 (commit abc with changes) go1 linux/amd64": {
			Version: "v1", Go: "go1", Platform: "linux/amd64", Commit: "abc", Modified: true,
		},
	} {
		if got := v.String(); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
