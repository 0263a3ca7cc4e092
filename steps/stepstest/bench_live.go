package stepstest

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// live is a session that probes all cells continuously, like a screen.
type live struct {
	*engine.Session
	seen chan steps.Result // each result of the watched check
	end  func()
}

// follow starts to probe all cells in the background, and returns once the session is green.
func (x *standing) follow(b *testing.B, check string) *live {
	b.Helper()
	s := x.session(b, cluster.Options{})
	ctx, cancel := context.WithCancel(b.Context())
	l := &live{Session: s, seen: make(chan steps.Result, 1024)}
	green, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		was := false
		_ = s.Follow(ctx, s.Guide().Cells(), func(board *engine.Board, _ map[steps.Cell]engine.Look, c steps.Cell) bool {
			if c.Check == check && c.Side == ground(x.Guide) {
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

// until reads verdicts until one has the wanted status. It returns the time at which that verdict arrived.
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

// apart is the time between two changes. As with manual changes, it is longer than the minimum time between two probes
// of a cell.
const apart = 150 * time.Millisecond

// Change measures the time from a write to the changed verdict, in a session that continuously probes all cells.
func (x Bench) Change(b *testing.B) {
	s := x.stand(b, 0)
	l := s.follow(b, x.Breaks)
	defer l.end()
	admin := s.box.Open(b, string(ground(x.Guide)), cluster.Options{})
	var took []time.Duration
	change := func(do func(testing.TB, *cluster.Cluster), want steps.Status) {
		<-time.After(apart)
		start := time.Now()
		do(b, admin)
		took = append(took, l.until(b, want).Sub(start))
	}
	for b.Loop() {
		change(x.Break, steps.Fail)
		change(x.FixedBy, steps.Pass)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// quiet is how long the requests of an idle session are counted. It equals the longest of the usual max ages, because a
// shorter time would miss requests.
const quiet = time.Minute

// Idle counts the requests of a green session while nothing changes. Reads that can't be watched, such as access
// reviews and the version, have a max age and are repeated.
func (x Bench) Idle(b *testing.B) {
	s := x.stand(b, 0)
	l := s.follow(b, "")
	defer l.end()
	start, cpu := s.total(), processorTime(b)
	<-time.After(quiet)
	used := processorTime(b) - cpu // first, because counting the requests takes processor time, too
	asked := s.total() - start
	for b.Loop() { // one minute is enough, so this runs once, regardless of -benchtime
	}
	b.ReportMetric(float64(asked)*float64(time.Minute/quiet), "requests/min")
	b.ReportMetric(100*float64(used)/float64(quiet), "%core")
	b.ReportMetric(0, "ns/op")
}

// Memory measures carrick's own memory while it continuously probes all cells on both sides.
func (x Bench) Memory(b *testing.B) {
	s := x.stand(b, 0)
	link := linkfile.New(x.Guide.Name, benchLink)
	link.Path = filepath.Join(b.TempDir(), "bench.yaml")
	for key, v := range s.answers {
		if q, _ := x.Guide.Question(key); !q.Secret {
			link.Answers[key] = v
		}
	}
	for _, side := range steps.Sides {
		*link.Side(side) = spec(
			s.box, x.Guide, side,
			kubeconfig.Access{Context: s.box.Contexts[string(side)], Kubeconfig: s.box.Kubeconfigs[string(side)]},
		)
	}
	if err := link.Save(); err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), Program(b), "check", "--watch", link.Path)
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
	for range x.Guide.Cells() { // each reports something at least once
		if !lines.Scan() {
			b.Fatalf("carrick exited: %v", lines.Err())
		}
	}
	held := Resident(b, cmd.Process.Pid)
	for b.Loop() { // as in Idle
	}
	b.ReportMetric(float64(held)/(1<<20), "MB-resident")
	b.ReportMetric(0, "ns/op")
}
