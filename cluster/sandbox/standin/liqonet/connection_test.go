package liqonet

import (
	"testing"
	"time"
)

func TestLatencyIsShownInWholeUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "N/A", 1999 * time.Microsecond: "1ms", 999 * time.Microsecond: "999μs",
	} {
		if got := latency(d); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
}
