package build

import (
	"os"
	"regexp"
	"testing"
)

var (
	required = regexp.MustCompile(`(?m)^(?:\t|require )(\S+) (v\S+)`)
	replaced = regexp.MustCompile(`(?m)^(?:\t|replace )(\S+) => \S+ (v\S+)$`)
)

// versions maps each module in a go.mod to its version.
func versions(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, lines := range []*regexp.Regexp{required, replaced} {
		for _, m := range lines.FindAllStringSubmatch(string(text), -1) {
			out[m[1]] = m[2]
		}
	}
	return out
}

// Go compiles a package only once for both programs if the package and all its imports have the same versions in both.
func TestBothProgramsHaveTheSameVersions(t *testing.T) {
	program, shared := versions(t, "../../../go.mod"), 0
	for module, sandbox := range versions(t, "../go.mod") {
		switch carrick, ok := program[module]; {
		case !ok:
		case carrick != sandbox:
			t.Errorf("%s is %s in go.mod, and %s in cluster/sandbox/go.mod: go get the newer one in the other folder",
				module, carrick, sandbox)
		default:
			shared++
		}
	}
	if shared < 50 {
		t.Errorf("%d modules are the same: go.mod is not read as it is written", shared)
	}
}
