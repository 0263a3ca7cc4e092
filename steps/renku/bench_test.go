package renku_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/renku"
	"carrick/steps/stepstest"
)

const (
	benchSpace = "bench-sessions"
	benchAdmin = "carrick-bench"
	roundTrip  = 50 * time.Millisecond
	furtherOff = 200 * time.Millisecond // of the passes that count round trips alone
)

// bench is the guide, applied and green, with both API servers some way off.
type bench struct {
	box      *clustertest.Sandbox
	made     *steps.Session // that applied it
	way      []*stepstest.Proxy
	access   map[steps.Side]cluster.Access
	requests map[steps.Side]func() int
	answers  map[string]any
}

func newBench(b *testing.B, roundTrip time.Duration) *bench {
	b.Helper()
	box := clustertest.Start(b)
	box.Seed(b, "renku")
	far := map[steps.Side]*stepstest.Proxy{}
	for _, side := range steps.Sides {
		far[side] = stepstest.NewProxy(b, box, side, roundTrip)
	}
	// the credential under test goes the far way, too
	answers := site(b, box, map[string]any{"sessions.namespace": benchSpace, "remote.server": far[steps.Remote].URL})
	s := stepstest.Open(b, box, renku.Guide(), assets, "bench", answers)
	stepstest.Apply(b, s)
	stepstest.Green(b, s)
	out := &bench{box: box, made: s, answers: answers, access: map[steps.Side]cluster.Access{}, requests: map[steps.Side]func() int{}}
	for _, side := range steps.Sides {
		path, name := far[side].Kubeconfig(b, box, side)
		out.way = append(out.way, far[side])
		out.access[side] = cluster.Access{Kubeconfig: path, Context: name, As: benchAdmin}
		out.requests[side] = stepstest.Requests(b, box, side, benchAdmin, benchSpace)
	}
	return out
}

// end takes it all back, while the proxies stand that Renku reaches the remote
// cluster through.
func (x *bench) end(b *testing.B) { stepstest.Undo(b, x.made) }

// session is a new session, as the program starts one: without a connection.
func (x *bench) session(b *testing.B, o cluster.Options) *steps.Session {
	b.Helper()
	link, secrets := steps.NewLink("renku", "bench"), map[string]cluster.Masked{}
	for key, v := range x.answers {
		if q, _ := renku.Guide().Question(key); q.Secret {
			secrets[key] = cluster.Mask(v.(string))
		} else {
			link.Answers[key] = v
		}
	}
	ends := map[steps.Side]steps.End{}
	for side, access := range x.access {
		c, err := cluster.Open(access, o)
		if err != nil {
			b.Fatal(err)
		}
		ends[side] = steps.End{Cluster: c, Name: access.Context}
	}
	return steps.NewSession(steps.SessionOptions{Guide: renku.Guide(), Link: link, Ends: ends, Assets: assets, Secrets: secrets})
}

// move puts both API servers that far off.
func (x *bench) move(roundTrip time.Duration) {
	for _, p := range x.way {
		p.Far(roundTrip)
	}
}

func (x *bench) total() int {
	n := 0
	for _, count := range x.requests {
		n += count()
	}
	return n
}

// BenchmarkPass is a whole guide's checks with both API servers 50 ms away, and
// no connection yet; beside it kubectl, for eight of the same reads. A second
// pass each time is 200 ms further off: what the two differ by is round trips
// alone ("chain"), without what this machine needs for itself.
func BenchmarkPass(b *testing.B) {
	x := newBench(b, roundTrip)
	defer x.end(b)
	for _, way := range []struct {
		name    string
		options cluster.Options
	}{{"once", cluster.Options{Once: true}}, {"live", cluster.Options{}}} {
		way.options.Patience = patience
		b.Run(way.name, func(b *testing.B) {
			var near, far []time.Duration
			distinct, before, busy := 0, x.total(), processorTime(b)
			for b.Loop() {
				d, reads := x.pass(b, roundTrip, way.options)
				near, distinct = append(near, d), reads
				d, _ = x.pass(b, roundTrip+furtherOff, way.options)
				far = append(far, d)
			}
			passes := float64(len(near) + len(far))
			busy = processorTime(b) - busy
			requests := x.total() - before
			slices.Sort(near)
			slices.Sort(far)
			pass := near[len(near)/2]
			b.ReportMetric(float64(pass)/float64(roundTrip), "rtt")
			b.ReportMetric(float64(near[0])/float64(roundTrip), "rtt-min")
			b.ReportMetric(float64(far[len(far)/2]-pass)/float64(furtherOff), "chain")
			b.ReportMetric(float64(far[0]-near[0])/float64(furtherOff), "chain-min")
			b.ReportMetric(float64(busy.Microseconds())/1000/passes, "processor-ms")
			b.ReportMetric(float64(requests)/passes, "requests")
			b.ReportMetric(float64(distinct), "distinct-reads")
			b.ReportMetric(float64(x.kubectl(b))*float64(distinct)/float64(pass), "kubectl/carrick(from-8-reads)")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// patience keeps a pass from calling a busy machine an API server that is gone.
const patience = 30 * time.Second

// pass looks at everything once, in a session of its own, and says how long
// that took and how many distinct reads it was.
func (x *bench) pass(b *testing.B, roundTrip time.Duration, o cluster.Options) (took time.Duration, distinct int) {
	b.Helper()
	x.move(roundTrip)
	s := x.session(b, o)
	defer s.Close()
	ctx, read := cluster.Traced(b.Context())
	start := time.Now()
	board, _ := s.Look(ctx, s.Guide().Cells())
	took = time.Since(start)
	if n := board.Count(""); !n.Green() {
		b.Fatalf("not green: %s\n%s", n, notGreen(board))
	}
	return took, read.Reads()
}

// kubectl is how long kubectl takes for one read, on average of eight of the
// guide's, with what it caches in place.
func (x *bench) kubectl(b *testing.B) time.Duration {
	b.Helper()
	x.move(roundTrip)
	reads := [][]string{
		{"get", "namespace", "kube-system"},
		{"get", "namespace", benchSpace},
		{"get", "nodes"},
		{"get", "storageclasses"},
		{"get", "-n", benchSpace, "serviceaccount", "renku-bench"},
		{"get", "-n", benchSpace, "rolebindings"},
		{"get", "-n", benchSpace, "secret", "renku-bench-token"},
		{"auth", "can-i", "list", "pods", "-n", benchSpace},
	}
	cache := b.TempDir()
	run := func(args []string) {
		a := x.access[steps.Remote]
		all := append([]string{"--kubeconfig", a.Kubeconfig, "--context", a.Context, "--cache-dir", cache}, args...)
		if out, err := exec.CommandContext(b.Context(), x.box.Kubectl, all...).CombinedOutput(); err != nil {
			b.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	run(reads[0])
	start := time.Now()
	for _, args := range reads {
		run(args)
	}
	return time.Since(start) / time.Duration(len(reads))
}

// live is a session that is followed, with all cells as a screen has them.
type live struct {
	*steps.Session
	seen chan steps.Result // of the check that is watched, each time it is looked at
	end  func()
}

// follow follows a session until it is green, and goes on.
func (x *bench) follow(b *testing.B, check string) *live {
	b.Helper()
	s := x.session(b, cluster.Options{})
	ctx, cancel := context.WithCancel(b.Context())
	l := &live{Session: s, seen: make(chan steps.Result, 1024)}
	green, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		was := false
		_ = s.Follow(ctx, s.Guide().Cells(), func(board *steps.Board, _ map[steps.Cell]steps.Look, c steps.Cell) bool {
			if c.Check == check {
				l.seen <- board.Verdict(c)
			}
			if !was && board.Count("").Green() {
				was = true
				close(green)
			}
			return true
		})
	}()
	l.end = func() {
		cancel()
		<-done
		s.Close()
	}
	select {
	case <-green:
	case <-time.After(time.Minute):
		l.end()
		b.Fatal("not green after a minute")
	}
	return l
}

// until takes verdicts until one has that status.
func (l *live) until(b *testing.B, want steps.Status) time.Time {
	b.Helper()
	for {
		select {
		case r := <-l.seen:
			if r.Status == want {
				return time.Now()
			}
		case <-time.After(10 * time.Second):
			b.Fatalf("no verdict %s within 10 s", want)
		}
	}
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// apart is the time between two changes: more than the calm that a cell keeps
// after each look, as with changes that people make.
const apart = 150 * time.Millisecond

// BenchmarkChange is the time from a write that is sent to the verdict that it
// changes, on a session that follows the whole guide.
func BenchmarkChange(b *testing.B) {
	x := newBench(b, 0)
	defer x.end(b)
	l := x.follow(b, "pod-security")
	defer l.end()
	admin := x.box.Open(b, clustertest.Remote, cluster.Options{})
	set := func(level string) {
		patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":` + level + `}}}`
		if _, err := admin.Patch(b.Context(), namespaces, "", benchSpace, []byte(patch), cluster.PatchOptions{Manager: "bench"}); err != nil {
			b.Fatal(err)
		}
	}
	var took []time.Duration
	change := func(level string, want steps.Status) {
		<-time.After(apart)
		start := time.Now()
		set(level)
		took = append(took, l.until(b, want).Sub(start))
	}
	for b.Loop() {
		change(`"restricted"`, steps.Fail)
		change("null", steps.Pass)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// quiet is how long the idle session is listened to: as long as the longest of
// the usual max ages, or it would seem to ask for nothing.
const quiet = time.Minute

// BenchmarkIdle is what a green session asks for while nothing happens. What
// can't be watched (access reviews, the version) has a max age and is asked for
// again.
func BenchmarkIdle(b *testing.B) {
	x := newBench(b, 0)
	defer x.end(b)
	l := x.follow(b, "")
	defer l.end()
	start, cpu := x.total(), processorTime(b)
	<-time.After(quiet)
	asked, used := x.total()-start, processorTime(b)-cpu
	for b.Loop() { // one minute says it: the benchmark is run once, whatever -benchtime
	}
	b.ReportMetric(float64(asked)*float64(time.Minute/quiet), "requests/min")
	b.ReportMetric(100*float64(used)/float64(quiet), "%core")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory is what the program itself holds while it follows the whole
// guide on both sides.
func BenchmarkMemory(b *testing.B) {
	x := newBench(b, 0)
	defer x.end(b)
	link := steps.NewLink("renku", "bench")
	link.Path = filepath.Join(b.TempDir(), "bench.yaml")
	link.Answers["sessions.namespace"] = benchSpace
	for _, side := range steps.Sides {
		*link.Side(side) = steps.EndSpec{Context: x.box.Contexts[string(side)], Kubeconfig: x.box.Kubeconfigs[string(side)]}
	}
	if err := link.Save(); err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), stepstest.Program(b), "check", "--watch", link.Path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	for range renku.Guide().Cells() { // each says something at least once
		if !lines.Scan() {
			b.Fatalf("carrick ended: %v", lines.Err())
		}
	}
	held := stepstest.Resident(b, cmd.Process.Pid)
	for b.Loop() { // as in BenchmarkIdle
	}
	b.ReportMetric(float64(held)/(1<<20), "MB-resident")
	b.ReportMetric(0, "ns/op")
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// notGreen says which checks keep a board from being green, and what they found.
func notGreen(board *steps.Board) string {
	var out strings.Builder
	for _, c := range renku.Guide().Cells() {
		if v := board.Verdict(c); !v.Allows() && v.Status != steps.Skip {
			fmt.Fprintf(&out, "%s on the %s: %s: %s\n", c.Check, c.Side, v.Status, v.Found)
		}
	}
	return out.String()
}
