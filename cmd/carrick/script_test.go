package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"

	"carrick/cluster/clustertest"
	"carrick/steps/engine"
)

// TestScripts runs what needs no cluster.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(besideEachOther{t}, "../../testdata/script", func(*testscript.Env) error { return nil })
}

// TestToyScripts runs what needs two clusters and no guide in particular. The scripts share the clusters: each has a
// link name and namespaces of its own.
func TestToyScripts(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	all := &atOnce{T: t}
	runScripts(all, "../../testdata/script/toy", onClusters(box))
	all.Wait()
}

// onClusters gives a script both clusters.
func onClusters(box *clustertest.Sandbox) func(*testscript.Env) error {
	return func(e *testscript.Env) error {
		both := []string{box.Kubeconfigs[clustertest.Local], box.Kubeconfigs[clustertest.Remote]}
		e.Setenv("KUBECONFIG", strings.Join(both, string(os.PathListSeparator)))
		e.Setenv("REMOTE", box.Kubeconfigs[clustertest.Remote])
		e.Setenv("PATH", e.Getenv("PATH")+string(os.PathListSeparator)+filepath.Dir(box.Kubectl))
		return nil
	}
}

// renkuByScripts runs what only the guide renku shows, one script after the other: a cluster has one csi-rclone, which all
// links share.
func renkuByScripts(t *testing.T) {
	box := clustertest.Start(t)
	box.Seed(t, "renku")
	token := renkuToken(t, box)
	runScripts(oneByOne{t}, "../../testdata/script/renku", func(e *testscript.Env) error {
		box.Settle(t, clustertest.Remote) // csi-rclone may be on its way out
		return errors.Join(onClusters(box)(e), os.WriteFile(filepath.Join(e.WorkDir, "token"), []byte(token), 0o600))
	})
}

func runScripts(t testscript.T, dir string, more func(*testscript.Env) error) {
	schema, err := filepath.Abs("../../steps/linkfile/link.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	testscript.RunT(t, testscript.Params{
		Dir: dir, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("SCHEMA", schema)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			return more(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "refuses": refuses, "report": report, "keep": keep, "document": document, "forge": forge, "agekey": ageKey, "sshkey": sshKey, "signer": signer,
		},
	})
}

// oneByOne runs scripts one after the other.
type oneByOne struct{ *testing.T }

func (oneByOne) Parallel()     {}
func (oneByOne) Verbose() bool { return testing.Verbose() }
func (t oneByOne) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(oneByOne{t}) })
}

// besideEachOther runs scripts in parallel.
type besideEachOther struct{ *testing.T }

func (besideEachOther) Verbose() bool { return testing.Verbose() }
func (t besideEachOther) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(besideEachOther{t}) })
}

// atOnce runs scripts at the same time, on clusters that the test has. They are no parallel subtests: those would wait for
// tests that wait for a sandbox, and keep theirs.
type atOnce struct {
	*testing.T
	sync.WaitGroup
}

func (*atOnce) Parallel()     {}
func (*atOnce) Verbose() bool { return testing.Verbose() }
func (t *atOnce) Run(name string, f func(testscript.T)) {
	t.Go(func() { t.T.Run(name, func(one *testing.T) { f(oneByOne{one}) }) })
}

// exits CODE PROGRAM ARG... runs a program that has to end with exactly that
// code, whatever it says without a stack trace and without an escape sequence.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended := (*exec.ExitError)(nil)
		if !errors.As(err, &ended) {
			ts.Fatalf("%v", err)
		}
		code = ended.ExitCode()
	}
	if got := strconv.Itoa(code); got != args[0] {
		ts.Fatalf("exit code %s, not %s", got, args[0])
	}
	for _, end := range []string{"stdout", "stderr"} {
		if bad := unfit(ts.ReadFile(end)); bad != "" {
			ts.Fatalf("%s holds %s", end, bad)
		}
	}
}

// refuses CODE PROGRAM ARG... is exits, of a program that writes no data and
// one message.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, args)
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("it wrote data")
	}
	said := ts.ReadFile("stderr")
	if n := len(regexp.MustCompile(`(?m)^(kubectl )?carrick: `).FindAllString(said, -1)); n != 1 || !strings.HasSuffix(said, "\n") {
		ts.Fatalf("%d messages, not one", n)
	}
}

// report FORMAT [ID STATUS [FOUND [FIX]]]: what was written is one report in
// that format, in which that check has that verdict. FOUND and FIX are regular
// expressions.
func report(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: report json|yaml [ID STATUS [FOUND [FIX]]]")
	}
	r, err := readReport(args[0], ts.ReadFile("stdout"))
	ts.Check(err)
	if len(args) < 3 {
		return
	}
	for _, c := range r.Checks {
		if c.ID != args[1] {
			continue
		}
		for i, got := range []string{c.Status.String(), c.Found, c.Fix} {
			if i+2 < len(args) && !regexp.MustCompile(args[i+2]).MatchString(got) {
				ts.Fatalf("%s: %q does not match %q", c.ID, got, args[i+2])
			}
		}
		return
	}
	ts.Fatalf("the report has no %s", args[1])
}

func readReport(format, text string) (r engine.Report, err error) {
	if format == "yaml" {
		if json.Valid([]byte(text)) {
			return r, errors.New("this is JSON")
		}
		err = yaml.UnmarshalStrict([]byte(text), &r)
	} else {
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		if err = d.Decode(&r); err == nil && d.Decode(&struct{}{}) != io.EOF {
			err = errors.New("more than one document")
		}
	}
	if err == nil && (r.Kind != "CheckReport" || len(r.Checks) == 0) {
		err = errors.New("this is no report")
	}
	return r, err
}

// keep NAME keeps what was written in an environment variable.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keep NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// unfit names what no output may hold, or is "".
func unfit(output string) string {
	switch {
	case strings.Contains(output, "\x1b"):
		return "an escape sequence"
	case strings.Contains(output, "goroutine "), strings.Contains(output, "panic:"):
		return "a stack trace"
	}
	return ""
}
