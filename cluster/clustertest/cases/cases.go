// Package cases counts the attempts to break carrick: a crash, a fault, a missing permission, hostile input. A case is
// a subtest. If CARRICK_CASES names a file, each case appends a line to it, which the command table summarizes.
package cases

import (
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// fileEnv is the environment variable that names the file of cases.
const fileEnv = "CARRICK_CASES"

// briefEnv is the environment variable of a brief run.
const briefEnv = "CARRICK_BRIEF"

// briefly are the guides that a brief run tries a group of cases with. Groups that are not here it leaves out.
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

// LeftOut skips the test in a brief run that does not try this group of cases with this guide.
func LeftOut(t *testing.T, group, guide string) {
	t.Helper()
	if Brief() && !slices.Contains(briefly[group], guide) {
		t.Skipf("left to the whole of make verify: %s is set", briefEnv)
	}
}

// LeftOutHere is LeftOut for the guide in whose package the test is. It never skips a test of another package.
func LeftOutHere(t *testing.T, group string) {
	t.Helper()
	if guide, ok := strings.CutPrefix(packagePath(), "carrick/steps/guides/"); ok {
		LeftOut(t, group, guide)
	}
}

// packagePath returns the import path of the tested package, or "".
func packagePath() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return strings.TrimSuffix(info.Path, ".test")
}

// Case is one line of the file.
type Case struct {
	Kind string `json:"kind"` // what was tried; unique within its kind and package
	Name string `json:"name"` // what was tried; unique in its kind and package
	Held bool   `json:"held"`
	// Package and Test are the test binary and the top-level test of the case; Run is the process. A test that runs again
	// tries all its cases again.
	Package string `json:"package,omitempty"`
	Test    string `json:"test,omitempty"`
	Run     int    `json:"run,omitempty"`
}

// Run tries one case as a subtest.
func Run(t *testing.T, kind, name string, try func(t *testing.T)) (held bool) {
	t.Helper()
	return t.Run(name, func(t *testing.T) {
		defer func() {
			if !t.Skipped() { // a skipped subtest is no case
				Note(t, kind, t.Name(), !t.Failed())
			}
		}()
		try(t)
	})
}

// Whole turns a test with all its subtests into one case. A brief run may leave it out, see LeftOutHere.
func Whole(t *testing.T, kind string) {
	t.Helper()
	LeftOutHere(t, kind)
	t.Cleanup(func() {
		if !t.Skipped() {
			Note(t, kind, t.Name(), !t.Failed())
		}
	})
}

// Note adds a case that is not a subtest.
func Note(t testing.TB, kind, name string, held bool) {
	t.Helper()
	path := os.Getenv(fileEnv)
	if path == "" {
		return
	}
	c := Case{Kind: kind, Name: name, Held: held, Run: os.Getpid()}
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
