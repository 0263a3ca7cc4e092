package stepstest

import (
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/engine"
)

// Growth measures checks of many links at once, in one process, against the same two API servers. One link is applied.
// The others are copies of it under other names.
func Growth(
	b *testing.B, box *clustertest.Sandbox, g *steps.Guide, assets fs.FS, answers map[string]any, many []int,
	o ...steps.ApplyOptions,
) {
	made := Open(b, box, g, assets, "growth", answers)
	Apply(b, made, o...)
	Green(b, made)
	same := map[string]any{}
	for i := range g.Steps { // all links get the same answers, so the other links read what the first one has created
		for _, a := range made.Answers(b.Context(), &g.Steps[i]) {
			if a.Value != nil {
				same[a.Question.Key] = revealed(a.Value)
			}
		}
	}
	for _, n := range many {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			took, held, unknown := checkAll(b, box, g, assets, same, n)
			for b.Loop() { // one run is enough, regardless of -benchtime
			}
			b.ReportMetric(took.Seconds(), "s")
			b.ReportMetric(took.Seconds()/float64(n), "s/link")
			b.ReportMetric(held/float64(n), "MB/link")
			b.ReportMetric(unknown/float64(n), "unknown/link")
			b.ReportMetric(0, "ns/op")
		})
	}
	Undo(b, made)
}

func revealed(v any) any {
	if m, ok := v.(masked.Value); ok {
		return m.Reveal()
	}
	return v
}

// checkAll checks n links at once, each as carrick check does. took is the duration, held is the additional memory at
// the end, and unknown is the number of cells without a verdict.
func checkAll(
	b *testing.B, box *clustertest.Sandbox, g *steps.Guide, assets fs.FS, answers map[string]any, n int,
) (took time.Duration, held, unknown float64) {
	b.Helper()
	before := inUse()
	sessions := make([]*engine.Session, n)
	for i := range sessions {
		ends := map[steps.Side]engine.Endpoint{}
		for side := range box.Hosts {
			ends[steps.Side(side)] = hostEnd(b, box, steps.Side(side))
		}
		for _, side := range clusters(g) {
			c, err := cluster.Open(
				kubeconfig.Access{Kubeconfig: box.Kubeconfigs[string(side)], Context: box.Contexts[string(side)]},
				cluster.Options{Once: true, StaleAfter: timeout},
			)
			if err != nil {
				b.Fatal(err)
			}
			ends[side] = engine.Endpoint{Cluster: c, Name: c.Context()}
		}
		sessions[i] = OpenWith(b, g, assets, fmt.Sprintf("growth-%d", i), answers, ends)
	}
	boards := make([]*engine.Board, n)
	start := time.Now()
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() { boards[i], _ = s.Look(b.Context(), g.Cells()) })
	}
	all.Wait()
	took = time.Since(start)
	held = inUse() - before
	for i, s := range sessions {
		n := boards[i].Count("")
		unknown += float64(n.Of(engine.Unknown))
		if n.Of(engine.OK) == 0 {
			b.Fatal("no check passes, so the benchmark measures nothing")
		}
		s.Close()
	}
	return took, held, unknown
}

// inUse returns the size of the process's live heap in MB.
func inUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse+m.StackInuse) / (1 << 20)
}
