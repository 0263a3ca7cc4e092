// Package cases records test cases that try to break carrick: crashes, injected faults, missing permissions and hostile
// input. A case is a subtest. If the environment variable CARRICK_CASES names a file, each case appends a line to that
// file. Command table summarizes the file.
package cases

import (
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fileEnv is the environment variable that names the file of cases.
const fileEnv = "CARRICK_CASES"

// briefEnv is the environment variable that requests a brief run, which tests only the guides in the map briefly.
const briefEnv = "CARRICK_BRIEF"

// briefly maps each group of cases to the guides that a brief run tests. A brief run skips groups that are not in the
// map.
var briefly = map[string][]string{
	"adopt":   {"liqo", "vsphere"},
	"crash":   {"argocd", "liqo"},
	"cycle":   {"argocd", "renku"},
	"fault":   {"ondemand", "renku"},
	"hostile": {"ondemand"},
	"live":    {"ondemand", "renku"},
	"owner":   {"liqo", "renku", "vsphere"},
	"right":   {"liqo", "renku"},
	"secret":  {"renku"},
	"trust":   {"renku"},
}

// Brief reports whether this is a brief run.
func Brief() bool { return os.Getenv(briefEnv) != "" }

// LeftOut skips the test in a brief run, unless briefly contains the guide for this group of cases.
func LeftOut(t *testing.T, group, guide string) {
	t.Helper()
	if Brief() && !slices.Contains(briefly[group], guide) {
		t.Skipf("skipped, because %s is set; the full make verify runs this test", briefEnv)
	}
}

// LeftOutHere calls LeftOut with the guide whose package contains the test. In other packages it does nothing.
func LeftOutHere(t *testing.T, group string) {
	t.Helper()
	if guide, ok := strings.CutPrefix(packagePath(), "carrick/steps/guides/"); ok {
		LeftOut(t, group, guide)
	}
}

// packagePath returns the import path of the package under test, or "" if it is unknown.
func packagePath() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return strings.TrimSuffix(info.Path, ".test")
}

// Case is one line of the file of cases, encoded as JSON.
type Case struct {
	Kind string `json:"kind,omitempty"` // group of the case, such as "crash" or "fault"
	Name string `json:"name"`           // name of the case; unique within its kind and package
	Held bool   `json:"held,omitempty"`
	// NotRun is true for a test that did not run for lack of time. Its kind is unknown.
	NotRun bool `json:"notRun,omitempty"`
	// Package is the import path of the test's package, and Test the top-level test. Run is the ID of the test process. A
	// test that runs again repeats all its cases, so only the last run counts.
	Package string `json:"package,omitempty"`
	Test    string `json:"test,omitempty"`
	Run     int    `json:"run,omitempty"`
}

// Run runs one case as a subtest and records whether it passed. It returns false if the subtest failed. A subtest that
// is skipped, or that lacks subtests for lack of time, is not recorded.
func Run(t *testing.T, kind, name string, try func(t *testing.T)) (held bool) {
	t.Helper()
	return t.Run(name, func(t *testing.T) {
		defer func() {
			if !t.Skipped() && !Partial(t) { // a skipped subtest does not count as a case
				Note(t, kind, t.Name(), !t.Failed())
			}
		}()
		try(t)
	})
}

// Whole records a test with all its subtests as one case. It also calls LeftOutHere, which can skip the test in a brief
// run.
func Whole(t *testing.T, kind string) {
	t.Helper()
	LeftOutHere(t, kind)
	t.Cleanup(func() {
		if !t.Skipped() && !Partial(t) {
			Note(t, kind, t.Name(), !t.Failed())
		}
	})
}

// late contains the names of the tests and subtests of this process that did not run for lack of time.
var late sync.Map

// Partial reports whether the test passed without some of its subtests, because they did not run for lack of time.
func Partial(t *testing.T) (is bool) {
	late.Range(func(name, _ any) bool {
		is = strings.HasPrefix(name.(string), t.Name()+"/")
		return !is
	})
	return is && !t.Failed()
}

// Note records a case for which there is no subtest.
func Note(t testing.TB, kind, name string, held bool) {
	t.Helper()
	record(t, Case{Kind: kind, Name: name, Held: held})
}

// NotRun records that a test or subtest did not run for lack of time.
func NotRun(t testing.TB) {
	t.Helper()
	late.Store(t.Name(), true)
	record(t, Case{Name: t.Name(), NotRun: true})
}

func record(t testing.TB, c Case) {
	t.Helper()
	path := os.Getenv(fileEnv)
	if path == "" {
		return
	}
	c.Run = os.Getpid()
	c.Test, _, _ = strings.Cut(t.Name(), "/")
	c.Package = packagePath()
	line, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}
