package stepstest

import (
	"cmp"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"testing"
)

// The environment variables that say which tests on control planes are run.
const (
	all   = "CARRICK_ALL"   // not empty: all but the proofs
	turn  = "CARRICK_TURN"  // 0, 1 or 2: which third of those that take turns
	proof = "CARRICK_PROOF" // not empty: the proofs, too
)

// InTurn leaves out two of three tests that take minutes or are much alike, such as
// those of faults, by their names: CARRICK_TURN says which third is run (0 unless it is
// set), so that all are in three runs. With CARRICK_ALL none is left out.
func InTurn(t testing.TB) {
	t.Helper()
	h := fnv.New32a()
	h.Write([]byte(t.Name()))
	now, err := strconv.ParseUint(cmp.Or(os.Getenv(turn), "0"), 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", turn, err)
	}
	if its := h.Sum32() % 3; os.Getenv(all) == "" && uint64(its) != now%3 {
		t.Skipf("it is run where %s is %d, and by make test-all", turn, its)
	}
}

// Among is for ways of doing the same: those that are kept are always run, and the
// others in turn.
func Among(t testing.TB, name string, kept ...string) {
	t.Helper()
	if !slices.Contains(kept, name) {
		InTurn(t)
	}
}

// LongProof leaves out a proof over all places or requests of a guide, which takes many
// minutes, but with CARRICK_PROOF (make verify).
func LongProof(t testing.TB) {
	t.Helper()
	if !ProofAsked() {
		t.Skipf("%s is not set: make verify runs it", proof)
	}
}

// ProofAsked tells whether the long proofs are made.
func ProofAsked() bool { return os.Getenv(proof) != "" }
