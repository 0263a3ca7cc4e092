package stepstest_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"carrick/steps/stepstest"
)

// BenchmarkHelp measures the run time of carrick when it only prints help.
func BenchmarkHelp(b *testing.B) {
	program := stepstest.Program(b)
	var took []time.Duration
	var processor time.Duration
	for b.Loop() {
		start := time.Now()
		cmd := exec.CommandContext(b.Context(), program, "--help")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		took = append(took, time.Since(start))
		processor += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(processor.Microseconds())/1000/float64(len(took)), "processor-ms")
	b.ReportMetric(float64(took[0].Microseconds())/1000, "min-ms")
	b.ReportMetric(0, "ns/op")
}
