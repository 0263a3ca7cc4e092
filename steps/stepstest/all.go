package stepstest

import (
	"hash/fnv"
	"os"
	"slices"
	"testing"
)

// all is the environment variable with which no test on control planes is left out.
const all = "CARRICK_ALL"

// Long leaves out a test on control planes that takes minutes and is much like others, but
// with CARRICK_ALL (make test-all).
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv(all) == "" {
		t.Skipf("%s is not set: make test-all runs it", all)
	}
}

// Third leaves out two of three tests that are much alike, such as those of faults, by
// their names, but with CARRICK_ALL.
func Third(t testing.TB) {
	t.Helper()
	h := fnv.New32a()
	h.Write([]byte(t.Name()))
	if h.Sum32()%3 != 0 {
		Long(t)
	}
}

// Among leaves out all but the named ways of doing the same, but with CARRICK_ALL.
func Among(t testing.TB, name string, kept ...string) {
	t.Helper()
	if !slices.Contains(kept, name) {
		Long(t)
	}
}
