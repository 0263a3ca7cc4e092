package cluster

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/permission"
	"carrick/cluster/tracked"
)

// longestSample is the maximum length of one line in the metrics, in bytes.
const longestSample = 1 << 20

// Counted returns the samples of the given metric family from the API server, each in the form NAME{LABELS} VALUE. The
// result is cached for 30 s (see tracked.LookOf). The required permission to get /metrics is recorded with Need. If
// there are several API servers, the samples come from the one that answers.
func (c *Cluster) Counted(ctx context.Context, family string) ([]string, error) {
	c.Need(permission.Rule{Verb: "get", Path: "/metrics"})
	return tracked.LookOf(ctx, c, "counted/"+family, 30*time.Second, func(ctx context.Context) ([]string, error) {
		const doing = "read the API server's metrics"
		ctx, cancel := c.bounded(ctx)
		defer cancel()
		body, err := c.api.Verb(http.MethodGet).AbsPath("/metrics").MaxRetries(fewRetries).Stream(ctx)
		if err != nil {
			return nil, failed(ctx, doing, err)
		}
		defer body.Close()
		var out []string
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, longestSample)
		for lines.Scan() {
			if l := lines.Text(); strings.HasPrefix(l, family+"{") || strings.HasPrefix(l, family+" ") {
				out = append(out, clean.Text(l))
			}
		}
		if err := lines.Err(); err != nil {
			return nil, failed(ctx, doing, err)
		}
		return out, nil
	})
}
