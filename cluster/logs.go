package cluster

import (
	"context"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/clean"
)

// logLimit is the maximum number of bytes that are read of a log.
const logLimit = 1 << 20

// Logs returns the last lines of a container's log, at most 1 MiB, cleaned (see package clean). If container is "", the
// pod must have only one container. A tail of 0 or less returns the log from its beginning.
func (c *Cluster) Logs(ctx context.Context, namespace, pod, container string, tail int) (string, error) {
	at := location{
		gvr: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, namespace: namespace, name: pod,
		subresource: "log",
	}
	params := map[string]string{"limitBytes": strconv.Itoa(logLimit)}
	if container != "" {
		params["container"] = container
	}
	if tail > 0 {
		params["tailLines"] = strconv.Itoa(tail)
	}
	data, err := c.raw(
		ctx, "read "+at.String(), request{verb: http.MethodGet, at: at, params: params, accept: "text/plain, */*"},
	)
	if err != nil {
		return "", err
	}
	return clean.Text(string(data)), nil
}
