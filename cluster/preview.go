package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/permission"
	"carrick/cluster/tracked"
)

// previewAge is how long a result of a dry run is valid if the caller sets no age.
const previewAge = time.Minute

// Preview is the result of a dry run.
type Preview struct {
	Warnings []string                   // safe to display
	Kept     *unstructured.Unstructured // the object as it would be stored; callers must not change it
}

// PreviewOptions sets how long the result of a dry run is valid. The zero value means one minute.
type PreviewOptions struct {
	// Age is how long the first result is valid; 0 means one minute. If Steady is longer, each repeated result is valid
	// for twice as long as the previous one, up to Steady. When anything that On reads changes, Age applies again.
	Age, Steady time.Duration
	// On reads the objects on which the result depends, such as the admission webhook configurations. When one of them
	// changes, the dry run is repeated. If On returns an error, Preview returns it as a *PremiseError.
	On func(context.Context) error
}

// PremiseError means that Preview could not read an object on which the result depends. Preview then sends no dry run,
// so the API server has not rejected the object.
type PremiseError struct{ Err error }

func (e *PremiseError) Error() string { return e.Err.Error() }
func (e *PremiseError) Unwrap() error { return e.Err }

// Preview applies obj in a dry run, in which the API server does everything except store the object. If the object
// already exists, the dry run is an update. If the API server rejects the object, Preview returns its error. The result
// is cached (see tracked.LookAged), or until an RBAC object changes that the cluster watches.
func (c *Cluster) Preview(ctx context.Context, obj *unstructured.Unstructured, o PreviewOptions) (Preview, error) {
	at, err := c.locate(ctx, obj)
	doing := "try " + describeObject(obj)
	if err != nil {
		return Preview{}, failed(ctx, doing, err)
	}
	if err := at.check(); err != nil {
		return Preview{}, fmt.Errorf("%s: %w", doing, err)
	}
	body, err := encode(obj)
	if err != nil {
		return Preview{}, fmt.Errorf("%s: %w", doing, err)
	}
	for _, verb := range []string{"create", "patch"} {
		c.Need(permission.Rule{Verb: verb, Group: at.gvr.Group, Resource: at.gvr.Resource, Namespace: at.namespace})
	}
	key := "preview/" + at.String() + "/" + masked.New(string(body)).Hash()
	age := cmp.Or(o.Age, previewAge)
	return tracked.LookAged(
		ctx, c, key, tracked.Ages{First: age, Steady: max(age, o.Steady)}, func(ctx context.Context) (Preview, error) {
			c.reviewed(ctx)
			if o.On != nil {
				if err := o.On(ctx); err != nil {
					return Preview{}, &PremiseError{err}
				}
			}
			return c.preview(ctx, doing, at, body)
		},
	)
}

func (c *Cluster) preview(ctx context.Context, doing string, at location, body []byte) (Preview, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	result := c.api.Patch(types.ApplyPatchType).AbsPath(at.path()...).MaxRetries(fewRetries).
		Param(
			"fieldManager", "carrick.preview",
		).Param("fieldValidation", "Strict").Param("dryRun", "All").Param("force", "true").
		WarningHandler(rest.NoWarnings{}). // warnings are part of the result
		Body(body).Do(ctx)
	if err := result.Error(); err != nil {
		return Preview{}, failed(ctx, doing, err)
	}
	raw, err := result.Raw()
	if err != nil {
		return Preview{}, failed(ctx, doing, err)
	}
	out := Preview{Kept: &unstructured.Unstructured{}}
	if err := out.Kept.UnmarshalJSON(raw); err != nil {
		return Preview{}, failed(ctx, doing, failure.Unreadable(raw, err))
	}
	for _, w := range result.Warnings() {
		out.Warnings = append(out.Warnings, clean.Text(w.Text))
	}
	return out, nil
}

// Proxied sends a GET request to a path of a pod or a Service through the API server's proxy, like kubectl get --raw.
// The request therefore comes from inside the cluster. port is the name or number of a port; "" selects the only port.
// The response can contain control characters. It is cached for 30 s (see tracked.LookOf). The required permission to
// get the proxy subresource is recorded with Need.
func (c *Cluster) Proxied(
	ctx context.Context, resource, namespace, name, port, path string, query map[string]string,
) ([]byte, error) {
	c.Need(permission.Rule{Verb: "get", Resource: resource, Subresource: "proxy", Namespace: namespace})
	if port != "" {
		name += ":" + port
	}
	at := location{
		gvr: schema.GroupVersionResource{Version: "v1", Resource: resource}, namespace: namespace, name: name,
		subresource: "proxy",
	}
	doing := "ask " + at.String() + " through the API server"
	if err := at.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return tracked.LookOf(
		ctx, c, "proxy/"+at.String()+path+strconv.Quote(fmt.Sprint(query)), 30*time.Second,
		func(ctx context.Context) ([]byte, error) {
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
		},
	)
}
