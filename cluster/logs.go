package cluster

import (
	"context"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/clean"
)

const logLimit = 1 << 20

// Logs returns the last tail lines of a container's log. The result has at most 1 MiB and is safe to display (see
// package clean). If tail is 0 or less, it returns the log from its beginning. If container is "", the pod must have
// only one container.
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
