package stepstest

import (
	"fmt"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest/cases"
	"carrick/cluster/clustertest/proxy"
	"carrick/steps"
)

// matrixEnv is the environment variable that selects how crashes are tested: "each" tests every one separately, which
// takes an hour; otherwise they are chained.
const matrixEnv = "CARRICK_MATRIX"

const (
	runWithin   = 10 * time.Minute // timeout of a run that is not killed
	spareRuns   = 10               // runs that a chain may take in addition to 1.5 runs per change
	mostRuns    = 200
	greenInTime = "480s"
)

// crash is the point at which carrick is killed: the n-th change of a run. A change is a request that may change
// something, or a change to the files of a machine.
type crash struct {
	n     int
	after bool // the API server has answered, but carrick does not see it; of a file: before the next change
}

func (c crash) String() string {
	if c.after {
		return fmt.Sprintf("after %d", c.n)
	}
	return fmt.Sprintf("before %d", c.n)
}

// Crashes verifies that carrick can be killed around each of its changes, and that the next run continues from there:
// apply results in the same state as without a crash, and undo leaves nothing behind.
func (x Proof) Crashes(t *testing.T) {
	t.Parallel()
	cases.LeftOut(t, "crash", x.Guide.Name)
	t.Run("files", x.gated)
	if os.Getenv(matrixEnv) == "each" {
		x.eachCrash(t)
		return
	}
	s := x.stage(t)
	before := s.snapshot(t)
	applied := s.chain(t, "apply")
	s.holds(t)
	crashed := s.snapshot(t)
	s.nothingSecret(t)
	s.wholeFiles(t)
	undone := s.chain(t, "undo")
	s.dropEmpty(t, before)
	if d := cmp.Diff(before, s.snapshot(t)); d != "" {
		t.Errorf("undo did not leave things as they were (-before +after):\n%s", d)
	}
	s.nothingSecret(t)
	s.wholeFiles(t)

	changes := s.changes()
	s.finish(t, "apply")
	changes = s.changes() - changes
	s.holds(t)
	if d := cmp.Diff(x.same(before, s.snapshot(t)), x.same(before, crashed)); d != "" {
		t.Errorf("the crashed run ended in another state than the complete one (-complete +crashed):\n%s", d)
	}
	if len(applied) > changes*3/2+spareRuns { // recreated tokens and the like add half the runs
		t.Errorf("%d crashes of apply for %d changes", len(applied), changes)
	}
	for command, crashes := range map[string][]string{"apply": applied, "undo": undone} {
		if len(crashes) == 0 {
			t.Errorf("%s was never killed: this proves nothing", command)
		}
		for i, c := range crashes {
			cases.Note(t, "crash", fmt.Sprintf("%s/%s/%d %s", t.Name(), command, i+1, c), !t.Failed())
		}
	}
	t.Logf("%s: killed %d times in apply (%d changes), %d times in undo", x.Guide.Name, len(applied), changes, len(undone))
}

// gated skips a subtest if crashes between changes to files can't be tested.
func (x Proof) gated(t *testing.T) {
	if len(clusters(x.Guide)) == len(steps.Sides) {
		t.Skip("no side is a machine: there are no files")
	}
	if err := gates(); err != nil {
		t.Skipf("the program cannot be killed between two changes to files here: %v", err)
	}
}

// chain runs a command repeatedly and kills each run, alternately right after its first change or before its second, so
// that there is a crash after every change. A run that reverts what the previous one created, such as a token, makes no
// progress. So after a crash at a known place, the next run may make one more change. chain returns the places of all
// crashes once a run completes.
func (s *stage) chain(t *testing.T, command string) []string {
	t.Helper()
	began := time.Now()
	var where []string
	met, known := map[string]bool{}, 0 // places, and the number of consecutive runs killed at a known one
	for i := range mostRuns {
		at := crash{1 + known, true}
		if i%2 == 1 {
			at = crash{2 + known, false}
		}
		r, killed := s.crash(t, command, at)
		if killed == "" {
			if code := r.cmd.ProcessState.ExitCode(); code != 0 {
				t.Fatalf("%s: exit code %d after %d crashes\n%s", command, code, len(where), r.said())
			}
			t.Logf("%s: %d runs in %s", command, i+1, time.Since(began).Round(time.Second))
			return where
		}
		where = append(where, killed)
		if known++; !met[killed] {
			met[killed], known = true, 0
		}
	}
	t.Fatalf("%s: still not done after %d crashes: %q", command, mostRuns, where)
	return nil
}

// crash runs a command and kills it. killed is the place, or "" if the command completed first.
func (s *stage) crash(t *testing.T, command string, at crash) (r *run, killed string) {
	t.Helper()
	var mu sync.Mutex
	begun, done := 0, 0
	started := make(chan struct{})
	meet := func(count *int, here bool) func(proxy.Request) bool {
		return func(asked proxy.Request) bool {
			<-started
			mu.Lock()
			defer mu.Unlock()
			if asked.Resource == "serviceaccounts/token" && len(s.box.Hosts) > 0 {
				return true // the change is the write of the file that contains the token
			}
			*count++
			if here && killed == "" && *count == at.n {
				r.kill()
				killed = fmt.Sprintf("%s: %s", at, asked)
			}
			return killed == ""
		}
	}
	s.intercept(meet(&begun, !at.after), meet(&done, at.after))
	defer s.intercept(nil, nil)
	file := func(c fileChange) bool {
		<-started
		mu.Lock()
		defer mu.Unlock()
		if begun++; killed == "" && (begun == at.n && !at.after || begun > at.n) {
			r.kill()
			killed = fmt.Sprintf("%s: %s", at, c)
		}
		done++
		return killed == ""
	}
	s.keeper.Store(&file)
	defer s.keeper.Store(nil)
	r = s.start(t, command, "--yes")
	close(started)
	_ = r.code(t, runWithin)
	mu.Lock()
	defer mu.Unlock()
	return r, killed
}

func (s *stage) intercept(before, after func(proxy.Request) bool) {
	for _, way := range s.way {
		way.Intercept(before, after)
	}
}

// changes returns the number of changes so far.
func (s *stage) changes() int {
	n := int(s.files.Load())
	for _, p := range s.way {
		n += p.Changes()
	}
	return n
}

// finish runs a command that must succeed.
func (s *stage) finish(t *testing.T, command string) {
	t.Helper()
	r := s.start(t, command, "--yes")
	if code := r.code(t, runWithin); code != 0 {
		t.Fatalf("%s: exit code %d\n%s", command, code, r.said())
	}
}

// holds fails the test unless everything is green and nothing is left to do.
func (s *stage) holds(t *testing.T) {
	t.Helper()
	for _, command := range [][]string{{"check", "--wait", greenInTime}, {"diff"}} {
		r := s.start(t, command...)
		if code := r.code(t, runWithin); code != 0 {
			t.Errorf("%s: exit code %d\n%s", command[0], code, r.said())
		}
	}
}

// snapshot returns the content of the clusters and everything next to them.
func (s *stage) snapshot(t *testing.T) map[string]string {
	t.Helper()
	out := Snapshot(t, s.box)
	if s.Theirs != nil {
		maps.DeleteFunc(out, func(name, _ string) bool { return s.Theirs(name) })
	}
	if s.More != nil {
		for name, v := range s.More(t, s.box, s.answers) {
			out["beside "+name] = v
		}
	}
	return out
}

// eachCrash tests every crash of apply and of undo separately.
func (x Proof) eachCrash(t *testing.T) {
	var want map[string]string
	counts := map[string]int{}
	t.Run("reference", func(t *testing.T) {
		s := x.stage(t)
		before := s.snapshot(t)
		s.finish(t, "apply")
		counts["apply"] = s.changes()
		s.holds(t)
		want = x.same(before, s.snapshot(t))
		s.finish(t, "undo")
		counts["undo"] = s.changes() - counts["apply"]
	})
	for _, command := range []string{"apply", "undo"} {
		for n := 1; n <= counts[command]; n++ {
			for _, after := range []bool{true, false} {
				at := crash{n, after}
				cases.Run(t, "crash", command+" "+at.String(), func(t *testing.T) { x.oneCrash(t, command, at, want) })
			}
		}
	}
}

func (x Proof) oneCrash(t *testing.T, command string, at crash, want map[string]string) {
	s := x.stage(t)
	before := s.snapshot(t)
	if command == "undo" {
		s.finish(t, "apply")
	}
	if _, killed := s.crash(t, command, at); killed == "" {
		t.Logf("this run made fewer changes than %d", at.n)
	} else {
		t.Logf("killed %s", killed)
	}
	s.nothingSecret(t)
	s.finish(t, command)
	s.wholeFiles(t)
	if command == "undo" {
		s.dropEmpty(t, before)
		if d := cmp.Diff(before, s.snapshot(t)); d != "" {
			t.Errorf("undo did not leave things as they were (-before +after):\n%s", d)
		}
		return
	}
	s.holds(t)
	if d := cmp.Diff(want, x.same(before, s.snapshot(t))); d != "" {
		t.Errorf("the crashed run ended in another state than the complete one (-complete +crashed):\n%s", d)
	}
}
