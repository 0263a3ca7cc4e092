package cluster_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster"
	"carrick/cluster/failure"
)

// The metrics must not be judged by their first part.
func TestCountedReadsAllMetrics(t *testing.T) {
	const family = "calls_total"
	for name, c := range map[string]struct {
		takes time.Duration
		more  string
		cut   bool
		want  []string
		err   error
	}{
		"quick":      {want: []string{`calls_total{name="a"} 1`, "calls_total 2"}},
		"slow":       {takes: 8 * time.Second, want: []string{`calls_total{name="a"} 1`, "calls_total 2"}},
		"too slow":   {takes: 12 * time.Second, err: failure.ErrTimeout},
		"a long one": {more: "calls_x{" + strings.Repeat("x", 100_000) + "} 1\n", want: []string{`calls_total{name="a"} 1`, "calls_total 2"}},
		"cut short":  {cut: true, err: io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, api *fakeAPI) {
				api.setFault(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != "/metrics" {
						return false
					}
					if c.cut {
						w.Header().Set("Content-Length", "1000")
					}
					_, _ = io.WriteString(w, "# HELP calls_total x\ncalls_total{name=\"a\"} 1\ncalls_total_sum 9\n"+c.more)
					if c.takes > 0 {
						w.(http.Flusher).Flush()
						select {
						case <-time.After(c.takes):
						case <-r.Context().Done():
						}
					}
					_, _ = io.WriteString(w, "calls_total 2\n")
					return true
				})
				got, err := api.open(cluster.Options{}).Counted(t.Context(), family)
				if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
					t.Errorf("%v, %s", err, diff)
				}
			})
		})
	}
}
