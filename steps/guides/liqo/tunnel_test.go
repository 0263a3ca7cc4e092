package liqo

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"carrick/cluster/probe"
	"carrick/steps"
)

// Unless both clusters are known to run on one machine, a loopback address is not reachable.
func TestLoopbackLeadsNowhereFromElsewhere(t *testing.T) {
	for host, want := range map[string]steps.Status{
		"127.0.0.1": steps.Warn, "::1": steps.Warn, "198.51.100.7": steps.Pass, "100.64.1.1": steps.Warn,
		"fd00::7": steps.Warn,
	} {
		if r := judgeTarget(steps.Env{}, host, netip.MustParseAddr(host)); r.Status != want {
			t.Errorf("%s: %s %s", host, r.Status, r.Found)
		}
	}
	r := judgeTarget(steps.Env{}, "127.0.0.1", netip.MustParseAddr("127.0.0.1"))
	fix := "set network.address to an address of the "
	if r.Found != "127.0.0.1 is a loopback address, so other machines cannot reach it" ||
		!strings.HasPrefix(r.Fix, fix) {
		t.Errorf("%s, fix %q", r.Found, r.Fix)
	}
}

// These errors cannot occur with a fake gateway: a missing route and an invalid key.
func TestHandshakesThatCanNotBeTried(t *testing.T) {
	at := gatewayTarget{host: "198.51.100.7"}
	for _, c := range []struct {
		err        error
		found, fix string
	}{
		{
			syscall.ENETUNREACH, "no route to 198.51.100.7:51840 (from this machine). The nodes",
			"udpecho --port=5000",
		},
		{fmt.Errorf("read the key: %w", probe.ErrKey), "the handshake is not possible: ", "--step keys"},
	} {
		r := judgeHandshake(steps.Env{}, "198.51.100.7:51840", at, handshakeOutcome{err: c.err})
		if r.Status != steps.Warn || !strings.HasPrefix(r.Found, c.found) || !strings.Contains(r.Fix, c.fix) {
			t.Errorf("%s: %s, fix %q", r.Status, r.Found, r.Fix)
		}
	}
}
