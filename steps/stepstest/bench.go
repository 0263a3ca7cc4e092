package stepstest

import (
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/proxy"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

const (
	benchLink  = "bench"
	benchAdmin = "carrick-bench"
	roundTrip  = 50 * time.Millisecond
	furtherOff = 200 * time.Millisecond // extra latency of the runs that measure only round trips
)

// Bench configures the benchmarks of a guide on the sandbox scenario of the same name. The budgets are the same for all
// guides.
type Bench struct {
	Guide  *steps.Guide
	Assets fs.FS
	// Answers returns the answers of the link. remote is the address of the API server with added latency. The credential
	// that the guide creates uses this address. Here and below, "the cluster" is the remote cluster. If the guide's
	// remote side is a machine or optional, it is the local cluster.
	Answers func(tb testing.TB, box *clustertest.Sandbox, remote string) map[string]any
	// TakesOver is true if the guide edits another user's objects, such as a chart's.
	TakesOver bool
	// Counted is a namespace on the cluster. Requests from its ServiceAccounts count in addition to carrick's own.
	// Requests from other users don't count.
	Counted string
	// Reads lists the arguments of kubectl commands. Each performs a read on the cluster that the guide also performs.
	Reads [][]string
	// Breaks is a check. Break changes the cluster so that the check fails. FixedBy changes it so that the check passes
	// again.
	Breaks         string
	Break, FixedBy func(testing.TB, *cluster.Cluster)
}

// standing is a guide that is applied and green, with added latency to both API servers.
type standing struct {
	Bench
	link     string
	box      *clustertest.Sandbox
	way      []*proxy.Wire
	access   map[steps.Side]kubeconfig.Access
	requests map[steps.Side]func() int
	answers  map[string]any
}

func (x Bench) stand(b *testing.B, roundTrip time.Duration) *standing {
	b.Helper()
	out := &standing{
		Bench: x, link: benchLink, box: clustertest.Start(b), access: map[steps.Side]kubeconfig.Access{},
		requests: map[steps.Side]func() int{},
	}
	out.box.Reset(b)
	out.box.Seed(b, x.Guide.Name)
	far := map[steps.Side]*proxy.Wire{}
	for _, side := range clusters(x.Guide) {
		far[side] = proxy.NewWire(b, out.box, string(side), roundTrip)
	}
	// Requests with the guide's credential also have the latency.
	out.answers = x.Answers(b, out.box, far[ground(x.Guide)].URL)
	made := Open(b, out.box, action.WithDrift(x.Guide), x.Assets, benchLink, out.answers)
	Apply(b, made, steps.ApplyOptions{TakeOver: x.TakesOver})
	Green(b, made)
	for _, side := range clusters(x.Guide) {
		path, name := far[side].Kubeconfig(b, out.box, string(side))
		out.way = append(out.way, far[side])
		out.access[side] = kubeconfig.Access{Kubeconfig: path, Context: name, As: benchAdmin}
		out.requests[side] = requests(b, out.box, side, benchAdmin, x.Counted)
	}
	return out
}

// session opens a new session without connections, like carrick at startup.
func (x *standing) session(b testing.TB, o cluster.Options) *engine.Session {
	b.Helper()
	link, secrets := linkfile.New(x.Guide.Name, x.link), map[string]masked.Value{}
	for key, v := range x.answers {
		if q, _ := x.Guide.Question(key); q.Secret {
			secrets[key] = masked.New(v.(string))
		} else {
			link.Answers[key] = v
		}
	}
	ends := map[steps.Side]engine.Endpoint{}
	for side, access := range x.access {
		c, err := cluster.Open(access, o)
		if err != nil {
			b.Fatal(err)
		}
		ends[side] = engine.Endpoint{Cluster: c, Name: access.Context}
	}
	for side := range x.box.Hosts {
		ends[steps.Side(side)] = hostEnd(b, x.box, steps.Side(side))
	}
	return engine.NewSession(
		engine.SessionOptions{Guide: x.Guide, Link: link, Endpoints: ends, Assets: x.Assets, Secrets: secrets},
	)
}

// move sets the latency of both API servers.
func (x *standing) move(roundTrip time.Duration) {
	for _, p := range x.way {
		p.Far(roundTrip)
	}
}

func (x *standing) total() int {
	n := 0
	for _, count := range x.requests {
		n += count()
	}
	return n
}

// Pass measures a run of all checks without open connections and with both API servers 50 ms away. It also measures
// kubectl for some of the same reads. A second run has 200 ms more latency. The difference between the two runs
// ("chain") consists of round trips alone, without the CPU time of this machine.
func (x Bench) Pass(b *testing.B) {
	s := x.stand(b, roundTrip)
	for _, way := range []struct {
		name    string
		options cluster.Options
	}{{"once", cluster.Options{Once: true}}, {"live", cluster.Options{}}} {
		way.options.StaleAfter = timeout
		b.Run(way.name, func(b *testing.B) { s.passes(b, way.options) })
	}
}

func (x *standing) passes(b *testing.B, o cluster.Options) {
	var near, far []time.Duration
	distinct, before, busy := 0, x.total(), processorTime(b)
	for b.Loop() {
		d, reads := x.pass(b, roundTrip, o)
		near, distinct = append(near, d), reads
		d, _ = x.pass(b, roundTrip+furtherOff, o)
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
	b.ReportMetric(
		float64(x.kubectl(b))*float64(distinct)/float64(pass), fmt.Sprintf("kubectl/carrick(from-%d-reads)", len(x.Reads)),
	)
	b.ReportMetric(0, "ns/op")
}

// timeout is long enough that a busy machine is not mistaken for an unreachable API server.
const timeout = 30 * time.Second

// pass runs all checks once in a new session. It returns how long that took and the number of distinct reads.
func (x *standing) pass(b *testing.B, roundTrip time.Duration, o cluster.Options) (took time.Duration, distinct int) {
	b.Helper()
	x.move(roundTrip)
	s := x.session(b, o)
	defer s.Close()
	ctx, read := tracked.WithTrace(b.Context())
	start := time.Now()
	board, _ := s.Look(ctx, s.Guide().Cells())
	took = time.Since(start)
	if n := board.Count(""); !n.Green() {
		b.Fatalf("not green: %s\n%s", n, x.notGreen(board))
	}
	return took, read.Reads()
}

// kubectl returns the average duration of kubectl for some of the guide's reads, with a warm cache.
func (x *standing) kubectl(b *testing.B) time.Duration {
	b.Helper()
	x.move(roundTrip)
	cache := b.TempDir()
	run := func(args []string) {
		a := x.access[ground(x.Guide)]
		all := append([]string{"--kubeconfig", a.Kubeconfig, "--context", a.Context, "--cache-dir", cache}, args...)
		if out, err := exec.CommandContext(b.Context(), x.box.Kubectl, all...).CombinedOutput(); err != nil {
			b.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	run(x.Reads[0])
	start := time.Now()
	for _, args := range x.Reads {
		run(args)
	}
	return time.Since(start) / time.Duration(len(x.Reads))
}

// notGreen lists the checks that prevent a board from being green, and their findings.
func (x *standing) notGreen(board *engine.Board) string {
	var out strings.Builder
	for _, c := range x.Guide.Cells() {
		if v := board.Verdict(c); !v.Allows() && v.Status != steps.Skip {
			fmt.Fprintf(&out, "%s on the %s: %s: %s\n", c.Check, c.Side, v.Status, v.Found)
		}
	}
	return out.String()
}

// processorTime returns the CPU time that this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
