package cluster

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/permission"
	"carrick/cluster/tracked"
)

// Counted returns the samples of one metric family of the API server, cleaned, each as NAME{LABELS} VALUE. The result
// is cached as a look for 30 s. Counted requires the permission to get /metrics, which is noted (see Need). If there
// are several API servers, the samples are those of the one that answers.
func (c *Cluster) Counted(ctx context.Context, family string) ([]string, error) {
	c.Need(permission.Rule{Verb: "get", Path: "/metrics"})
	return tracked.LookOf(ctx, c, "counted/"+family, 30*time.Second, func(ctx context.Context) ([]string, error) {
		ctx, cancel := c.bounded(ctx)
		defer cancel()
		text, err := c.api.Verb(http.MethodGet).AbsPath("/metrics").MaxRetries(fewRetries).Do(ctx).Raw()
		if err != nil {
			return nil, failed(ctx, "read the API server's metrics", err)
		}
		var out []string
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			if l := lines.Text(); strings.HasPrefix(l, family+"{") || strings.HasPrefix(l, family+" ") {
				out = append(out, clean.Text(l))
			}
		}
		return out, nil
	})
}
