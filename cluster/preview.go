package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// previewAge is how long what an API server said of an object is kept: nothing
// tells when it would say something else.
const previewAge = time.Minute

// Preview asks the API server what it would say if obj were applied, and
// returns its warnings, cleaned. Nothing is kept by the API server, which takes
// part in all that it does but that: a refusal is its error. What it said is
// kept as a look for a minute.
func (c *Cluster) Preview(ctx context.Context, obj *unstructured.Unstructured) ([]string, error) {
	at, err := c.locate(ctx, obj)
	doing := "try " + describeObject(obj)
	if err != nil {
		return nil, failed(ctx, doing, err)
	}
	if err := at.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	body, err := encode(obj)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	for _, verb := range []string{"create", "patch"} {
		c.Need(Right{Verb: verb, Group: at.gvr.Group, Resource: at.gvr.Resource, Namespace: at.namespace})
	}
	return lookOf(ctx, c, "preview/"+at.String()+"/"+Mask(string(body)).Hash(), previewAge, func(ctx context.Context) ([]string, error) {
		ctx, cancel := c.bounded(ctx)
		defer cancel()
		result := c.api.Patch(types.ApplyPatchType).AbsPath(at.path()...).MaxRetries(fewRetries).
			Param("fieldManager", "carrick.preview").Param("fieldValidation", "Strict").Param("dryRun", "All").Param("force", "true").
			Body(body).Do(ctx)
		if err := result.Error(); err != nil {
			return nil, failed(ctx, doing, err)
		}
		var said []string
		for _, w := range result.Warnings() {
			said = append(said, Clean(w.Text))
		}
		return said, nil
	})
}

// Proxied reads a path of a pod or a Service through the API server, as kubectl
// get --raw does: what answers stands inside the cluster, and is asked from
// there. The answer, which is not cleaned, is kept as a look for 30 s.
// It takes the right to get the subresource proxy, which is noted (see Need).
// port may be a name or a number; "": the only one.
func (c *Cluster) Proxied(ctx context.Context, resource, namespace, name, port, path string, query map[string]string) ([]byte, error) {
	c.Need(Right{Verb: "get", Resource: resource, Subresource: "proxy", Namespace: namespace})
	if port != "" {
		name += ":" + port
	}
	at := location{gvr: schema.GroupVersionResource{Version: "v1", Resource: resource}, namespace: namespace, name: name, subresource: "proxy"}
	doing := "ask " + at.String() + " through the API server"
	if err := at.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return lookOf(ctx, c, "proxy/"+at.String()+path+strconv.Quote(fmt.Sprint(query)), 30*time.Second, func(ctx context.Context) ([]byte, error) {
		ctx, cancel := c.bounded(ctx)
		defer cancel()
		call := c.api.Verb(http.MethodGet).AbsPath(append(at.path(), path)...).MaxRetries(fewRetries)
		for key, value := range query {
			call.Param(key, value)
		}
		result := call.Do(ctx)
		if err := result.Error(); err != nil {
			return nil, failed(ctx, doing, err)
		}
		return result.Raw()
	})
}
