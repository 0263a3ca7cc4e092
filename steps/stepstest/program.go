package stepstest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// programPath is the environment variable with the path of a carrick program built from this tree.
const programPath = "CARRICK_PROGRAM"

// Program returns the path of the carrick program. It is CARRICK_PROGRAM if set. Otherwise Program builds it from this
// tree.
func Program(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv(programPath); path != "" {
		return path
	}
	path := filepath.Join(tb.TempDir(), "carrick")
	out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "carrick/cmd/carrick").CombinedOutput()
	if err != nil {
		tb.Fatalf("build carrick: %v\n%s", err, out)
	}
	return path
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// Resident returns the resident memory of a process in bytes. If the system does not report it, the test is skipped.
func Resident(tb testing.TB, pid int) int64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Skipf("the memory use of a process cannot be read here: %v", err)
	}
	m := resident.FindSubmatch(bytes.TrimSpace(status))
	if m == nil {
		tb.Fatalf("process %d does not report its memory use", pid)
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return kb << 10
}
