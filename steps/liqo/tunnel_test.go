package liqo

import (
	"net/netip"
	"testing"

	"carrick/steps"
)

// Where nothing tells that both sides stand on one machine, loopback leads
// nowhere.
func TestLoopbackLeadsNowhereFromElsewhere(t *testing.T) {
	for host, want := range map[string]steps.Status{"127.0.0.1": steps.Warn, "::1": steps.Warn, "198.51.100.7": steps.Pass, "100.64.1.1": steps.Warn, "fd00::7": steps.Warn} {
		if r := judgeTarget(steps.Env{}, host, netip.MustParseAddr(host)); r.Status != want {
			t.Errorf("%s: %s %s", host, r.Status, r.Found)
		}
	}
}
