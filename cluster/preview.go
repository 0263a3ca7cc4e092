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

// previewAge is how long what an API server said of an object is kept where
// nothing tells when it would say something else.
const previewAge = time.Minute

// Preview is what an API server says of an object that it is not to keep.
type Preview struct {
	Warnings []string                   // cleaned
	Kept     *unstructured.Unstructured // as it would be kept; it is shared: don't change it
}

// PreviewOptions say how long an answer counts. Zero: a minute.
type PreviewOptions struct {
	// Age is how long an answer counts; 0: a minute. Steady, where it is more, is what
	// that grows to while the same is asked again and nothing of On changes.
	Age, Steady time.Duration
	// On reads what the answer hangs on, such as who is asked about objects: when
	// that changes, the API server is asked anew. Its error is a *PremiseError.
	On func(context.Context) error
}

// PremiseError is why what an answer hangs on could not be read: the API server was
// not asked, and has refused nothing.
type PremiseError struct{ Err error }

func (e *PremiseError) Error() string { return e.Err.Error() }
func (e *PremiseError) Unwrap() error { return e.Err }

// Preview asks the API server what would become of obj if it were applied.
// Nothing is kept by the API server, which takes part in all that it does but
// that: a refusal is its error. What it said is kept as a look. A name that is
// taken makes it an update.
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
		WarningHandler(rest.NoWarnings{}). // they are part of the answer
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

// Proxied reads a path of a pod or a Service through the API server, as kubectl
// get --raw does: what answers stands inside the cluster, and is asked from
// there. The answer, which is not cleaned, is kept as a look for 30 s.
// It takes the right to get the subresource proxy, which is noted (see Need).
// port may be a name or a number; "": the only one.
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
