package stepstest

import (
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"carrick/steps"
	"carrick/steps/action"
)

var trip = flag.Duration("chain", 0, "latency of the API servers in TestChain, such as 2s; 0 skips the test")

// longestTrip is the maximum duration of a request of Chain on a busy machine.
const longestTrip = time.Minute

type sent struct {
	at   time.Duration
	what string
}

// Chain runs all checks once, on the green state of Mutants, with high latency to the API servers. It logs each request
// with the number of round trips that preceded it, and how long each check took. It requires no control planes. With a
// long enough round trip, other load on the machine does not affect the result. Opening a connection takes no time
// here. Over a network, each connection would take two more round trips.
func Chain(t *testing.T, g *steps.Guide, assets fs.FS, dir string) {
	t.Helper()
	if *trip == 0 {
		t.Skip("without -chain")
	}
	action.WithDrift(g)
	b := newMutantBase(t, g, assets, dir)
	var mu sync.Mutex
	var all []sent
	var start time.Time
	near := b.around
	b.around = func(side steps.Side) func(http.RoundTripper) http.RoundTripper {
		return func(next http.RoundTripper) http.RoundTripper {
			next = near(side)(next)
			return RoundTripper(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				all = append(all, sent{time.Since(start), fmt.Sprintf("%s %s %s", side, r.Method, r.URL.RequestURI())})
				mu.Unlock()
				time.Sleep(*trip)
				return next.RoundTrip(r)
			})
		}
	}
	b.patient = longestTrip
	s := b.session(t)
	defer s.Close()
	start = time.Now()
	_, looks := s.Look(t.Context(), g.Cells())
	took := time.Since(start)
	trips := func(d time.Duration) float64 { return float64(d) / float64(*trip) }
	slices.SortFunc(all, func(a, b sent) int { return int(a.at - b.at) })
	for _, one := range all {
		t.Logf("%5.2f %s", trips(one.at), one.what)
	}
	for _, c := range g.Cells() {
		t.Logf("%5.2f in total: %s on the %s", trips(looks[c].Duration), c.Check, c.Side)
	}
	t.Logf("%s: %.2f round trips, %d requests", g.Name, trips(took), len(all))
}
