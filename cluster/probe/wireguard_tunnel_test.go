package probe

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.zx2c4.com/wireguard/tun/tuntest"
)

// A probe with the key of one end of an active tunnel does not end the session. The other end sends to the probe's
// address only until it next receives data from the key's owner.
func TestHandshakeBesideATunnel(t *testing.T) {
	inside, outside := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	far, near := tuntest.NewChannelTUN(), tuntest.NewChannelTUN()
	own := wgKey(t)
	g := newGateway(t, far.TUN(), own.Public())
	client := newGateway(t, near.TUN())
	theirs := g.key.Public()
	err := client.IpcSet(fmt.Sprintf(
		"private_key=%x\npublic_key=%x\nendpoint=%s\nallowed_ip=%s/32\n", own.Reveal(), theirs[:], g.at("127.0.0.1"), inside,
	))
	if err != nil {
		t.Fatal(err)
	}
	ping := func(from, to *tuntest.ChannelTUN, source, target netip.Addr) {
		t.Helper()
		from.Outbound <- tuntest.Ping(target, source)
		select {
		case <-to.Inbound:
		case <-time.After(12 * time.Second): // WireGuard itself mends it after 15
			t.Fatalf("no packet from %s to %s", source, target)
		}
	}
	ping(near, far, outside, inside)
	ping(far, near, inside, outside)
	before := client.says(t, "last_handshake_time_nsec")

	tick := time.NewTicker(50 * time.Millisecond) // the gateway takes no two initiations of one key within 20 ms
	defer tick.Stop()
	look := handshake{again: tick.C, dial: dialUDP}
	if _, err := look.run(t.Context(), g.at("127.0.0.1"), own, g.key.Public()); err != nil {
		t.Fatal(err)
	}
	ping(near, far, outside, inside)
	ping(far, near, inside, outside)
	if after := client.says(t, "last_handshake_time_nsec"); after != before || before == "0" {
		t.Errorf("the tunnel shook hands at %s, and again at %s", before, after)
	}
}

// A probe leaves no goroutine and no socket open, whatever its outcome.
func TestHandshakeLeavesNothing(t *testing.T) {
	own := wgKey(t)
	g := newGateway(t, nothing(), own.Public())
	heard := make(chan struct{}, 100)
	silent := datagrams(t, func([]byte, func([]byte)) { heard <- struct{}{} })
	closed := closedPort(t, "udp4", "127.0.0.1")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	running, open := goleak.IgnoreCurrent(), openFiles(t)
	for _, tc := range []struct {
		situation, address string
		ctx                context.Context
		works              bool
	}{
		{"an answer", g.at("127.0.0.1"), t.Context(), true},
		{"silence", silent, nil, false},
		{"refused", closed, t.Context(), false},
		{"the caller has gone", silent, gone, false},
	} {
		look := steer(t)
		if tc.ctx == nil {
			tc.ctx = look.ctx
			look.after(heard)
		}
		if _, err := look.run(tc.ctx, tc.address, own, g.key.Public()); (err == nil) != tc.works {
			t.Errorf("%s: error %v", tc.situation, err)
		}
		if now := openFiles(t); now > open {
			t.Errorf("%s: %d files open, %d before", tc.situation, now, open)
		}
		goleak.VerifyNone(t, running)
	}
}

// openFiles returns the number of files and sockets that this process has open, or 0 if the system does not show them.
func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Logf("open sockets are not counted here: %v", err)
	}
	return len(files)
}

func BenchmarkHandshake(b *testing.B) {
	g := newGateway(b, nothing())
	var wire time.Duration
	for b.Loop() {
		b.StopTimer()
		own := wgKey(b) // a key of its own each: two initiations of one within 20 ms are one too many
		public := own.Public()
		if err := g.IpcSet(fmt.Sprintf("public_key=%x\n", public[:])); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		r, err := Handshake(b.Context(), g.at("127.0.0.1"), own, g.key.Public())
		if err != nil {
			b.Fatal(err)
		}
		wire += r.Took
	}
	b.ReportMetric(float64(wire.Microseconds())/float64(b.N), "µs-until-verified/op")
}
