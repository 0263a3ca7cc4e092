package carricktest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"carrick/cluster/clustertest"
	"carrick/steps/linkfile"
)

// RunScripts runs all scripts in dir.
func RunScripts(t testscript.T, dir string, more func(*testscript.Env) error) {
	testscript.RunT(t, testscript.Params{
		Dir: dir, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			schema := filepath.Join(filepath.Dir(e.WorkDir), filepath.Base(e.WorkDir)+".schema.json")
			if err := os.WriteFile(schema, linkfile.Schema, 0o600); err != nil {
				return err
			}
			e.Defer(func() { _ = os.Remove(schema) })
			e.Setenv("SCHEMA", schema)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			return more(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "refuses": refuses, "report": report, "keep": keep, "document": document, "forge": forge,
			"agekey": ageKey, "sshkey": sshKey, "signer": signer,
		},
	})
}

// OneByOne runs scripts sequentially.
type OneByOne struct{ *testing.T }

// Parallel does nothing.
func (OneByOne) Parallel() {}

// Verbose reports whether go test runs with -v.
func (OneByOne) Verbose() bool { return testing.Verbose() }

// Run runs one script as a subtest.
func (t OneByOne) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(OneByOne{t}) })
}

// BesideEachOther runs scripts in parallel.
type BesideEachOther struct{ *testing.T }

// Verbose reports whether go test runs with -v.
func (BesideEachOther) Verbose() bool { return testing.Verbose() }

// Run runs one script as a subtest.
func (t BesideEachOther) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(BesideEachOther{t}) })
}

// AtOnce runs scripts concurrently on the same sandbox. It does not use t.Parallel. Parallel subtests could deadlock
// with other tests that wait for the sandbox.
type AtOnce struct {
	*testing.T
	sync.WaitGroup
}

// Parallel does nothing.
func (*AtOnce) Parallel() {}

// Verbose reports whether go test runs with -v.
func (*AtOnce) Verbose() bool { return testing.Verbose() }

// Run starts one script as a subtest and does not wait for it.
func (t *AtOnce) Run(name string, f func(testscript.T)) {
	t.Go(func() { t.T.Run(name, func(one *testing.T) { f(OneByOne{one}) }) })
}

// OnClusters returns a setup function that gives a script access to both clusters.
func OnClusters(box *clustertest.Sandbox) func(*testscript.Env) error {
	return func(e *testscript.Env) error {
		both := []string{box.Kubeconfigs[clustertest.Local], box.Kubeconfigs[clustertest.Remote]}
		e.Setenv("KUBECONFIG", strings.Join(both, string(os.PathListSeparator)))
		e.Setenv("REMOTE", box.Kubeconfigs[clustertest.Remote])
		e.Setenv("PATH", e.Getenv("PATH")+string(os.PathListSeparator)+filepath.Dir(box.Kubectl))
		return nil
	}
}
