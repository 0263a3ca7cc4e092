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

// matrixEnv is the environment variable that selects how crashes are tested. "each" tests every crash separately, which
// takes an hour. By default, every run resumes the previous one, and every run is killed (see the method chain).
const matrixEnv = "CARRICK_MATRIX"

const (
	runWithin   = 10 * time.Minute // timeout of a run that is not killed
	spareRuns   = 10               // number of runs that are allowed in addition to 1.5 runs per change
	mostRuns    = 200
	greenInTime = "480s"
)

// crash is the point at which carrick is killed. n counts the changes of a run. A change is a request that can change
// something, or a change to the files of a machine.
type crash struct {
	n int
	// If after is true, carrick is killed after the API server has answered, but before carrick reads the answer. For a
	// change to a file, carrick is killed before the next change.
	after bool
}

func (c crash) String() string {
	if c.after {
		return fmt.Sprintf("after %d", c.n)
	}
	return fmt.Sprintf("before %d", c.n)
}

// Crashes verifies that carrick can be killed around each of its changes, and that the next run resumes. An apply must
// result in the same state as without a crash. An undo must leave nothing behind.
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
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
	s.nothingSecret(t)
	s.wholeFiles(t)

	changes := s.changes()
	s.finish(t, "apply")
	changes = s.changes() - changes
	s.holds(t)
	if d := cmp.Diff(x.same(before, s.snapshot(t)), x.same(before, crashed)); d != "" {
		t.Errorf("the crashed run ended in another state than the complete run (-complete +crashed):\n%s", d)
	}
	if len(applied) > changes*3/2+spareRuns { // recreated tokens, for example, add half the runs
		t.Errorf("%d crashes of apply for %d changes", len(applied), changes)
	}
	for command, crashes := range map[string][]string{"apply": applied, "undo": undone} {
		if len(crashes) == 0 {
			t.Errorf("%s was never killed, so the test proves nothing", command)
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
		t.Skip("no side is a machine, so the guide writes no files")
	}
	if err := gates(); err != nil {
		t.Skipf("carrick cannot be killed between two changes to files on this platform: %v", err)
	}
}

// chain runs a command repeatedly and kills each run. It alternates between a kill right after the first change and one
// before the second, so that there is a crash after every change. Some runs make no progress, because they revert what
// the previous run created, such as a token. If a run is killed at the same place as an earlier run, the next run can
// therefore make one more change. chain returns the places of all crashes once a run completes.
func (s *stage) chain(t *testing.T, command string) []string {
	t.Helper()
	began := time.Now()
	var where []string
	met, known := map[string]bool{}, 0 // places so far, and the number of consecutive runs killed at a known place
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

// crash runs a command and kills it. killed is the place. If the command completed first, killed is "".
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

// snapshot returns the content of the clusters and of the files next to them.
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
			t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
		}
		return
	}
	s.holds(t)
	if d := cmp.Diff(want, x.same(before, s.snapshot(t))); d != "" {
		t.Errorf("the crashed run ended in another state than the complete run (-complete +crashed):\n%s", d)
	}
}
