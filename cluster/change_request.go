package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
)

const jsonType types.PatchType = "application/json"

// fewRetries is the maximum number of times that client-go repeats a request that the API server rejected with 429 or
// Retry-After.
const fewRetries = 2

// location is the API location of an object or of a list.
type location struct {
	gvr         schema.GroupVersionResource
	namespace   string // "": cluster-scoped, or all namespaces
	name        string // "": the list
	subresource string
}

func (l location) String() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{l.namespace, l.name, l.subresource} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return clean.Text(strings.TrimSpace(l.gvr.GroupResource().String() + " " + strings.Join(parts, "/")))
}

func (l location) path() []string {
	path := []string{"/apis", l.gvr.Group, l.gvr.Version}
	if l.gvr.Group == "" {
		path = []string{"/api", l.gvr.Version}
	}
	if l.namespace != "" {
		path = append(path, "namespaces", l.namespace)
	}
	path = append(path, l.gvr.Resource)
	for _, part := range []string{l.name, l.subresource} {
		if part != "" {
			path = append(path, part)
		}
	}
	return path
}

// check returns an error if a part of the location, such as "..", would change the path of the request.
func (l location) check() error {
	for _, part := range []string{l.gvr.Group, l.gvr.Version, l.gvr.Resource, l.namespace, l.name} {
		if part == "." || part == ".." || strings.ContainsAny(part, "/%") {
			return fmt.Errorf("%q cannot be part of a path", part)
		}
	}
	return nil
}

type request struct {
	verb        string
	at          location
	params      map[string]string
	body        []byte
	contentType types.PatchType
	accept      string
	manager     string
	dryRun      bool
}

// send sends a request whose response must be a single object, and returns the object.
func (c *Cluster) send(ctx context.Context, doing string, r request) (*unstructured.Unstructured, error) {
	data, err := c.raw(ctx, doing, r)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(data); err != nil {
		return nil, failed(ctx, doing, failure.Unreadable(data, err))
	}
	return out, nil
}

func (c *Cluster) raw(ctx context.Context, doing string, r request) ([]byte, error) {
	if err := r.at.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	writes := r.verb == http.MethodPost || r.verb == http.MethodPatch
	if writes && r.at.subresource == "" && r.manager == "" {
		return nil, fmt.Errorf("%s: no field manager is set", doing)
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	call := c.api.Verb(r.verb).AbsPath(r.at.path()...).MaxRetries(fewRetries)
	if writes && r.at.subresource == "" {
		call.Param("fieldManager", r.manager).Param("fieldValidation", "Strict")
	}
	if r.dryRun {
		call.Param("dryRun", "All")
	}
	for key, value := range r.params {
		call.Param(key, value)
	}
	if r.accept != "" {
		call.SetHeader("Accept", r.accept)
	}
	if r.body != nil {
		call.SetHeader("Content-Type", string(r.contentType)).Body(r.body)
	}
	result := call.Do(ctx)
	// Check Error first, because it returns an error with the API server's Status. The error from Raw has no Status.
	if err := result.Error(); err != nil {
		return nil, failed(ctx, doing, err)
	}
	return result.Raw()
}

func (c *Cluster) locate(ctx context.Context, obj *unstructured.Unstructured) (location, error) {
	gvr, namespaced, err := c.Resource(ctx, obj.GroupVersionKind())
	if err != nil {
		return location{}, err
	}
	switch {
	case namespaced && obj.GetNamespace() == "":
		return location{}, errors.New("it has no namespace, but its kind is namespaced")
	case !namespaced && obj.GetNamespace() != "":
		return location{}, fmt.Errorf("it has the namespace %q, but its kind is cluster-scoped", obj.GetNamespace())
	}
	return location{gvr: gvr, namespace: obj.GetNamespace(), name: obj.GetName()}, nil
}

// encode returns the JSON of obj without managedFields. It returns an error if a Secret has a value that is not a
// string, because the API server would repeat the value in its error message.
func encode(obj *unstructured.Unstructured) ([]byte, error) {
	if obj.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		for _, field := range []string{"data", "stringData"} {
			values, _ := obj.Object[field].(map[string]any)
			for key, value := range values {
				if _, ok := value.(string); !ok && value != nil {
					return nil, fmt.Errorf("the value of %q in %s is not a string", key, field)
				}
			}
		}
	}
	if obj.GetManagedFields() != nil {
		obj = obj.DeepCopy()
		obj.SetManagedFields(nil)
	}
	return json.Marshal(obj.Object)
}

func describeObject(obj *unstructured.Unstructured) string {
	name := clean.Name(obj.GetName())
	if name == "" && obj.GetGenerateName() != "" {
		name = clean.Name(obj.GetGenerateName()) + "…"
	}
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	kind := obj.GetKind()
	if kind == "" {
		kind = "object without a kind"
	}
	return clean.Text(strings.TrimSpace(kind + " " + name))
}

// changeError is an API error together with the operation that failed. Its message is safe to display.
type changeError struct {
	doing string
	err   error
}

func (e *changeError) Error() string { return clean.Text(e.doing + ": " + e.err.Error()) }

// Unwrap returns the API error.
func (e *changeError) Unwrap() error { return e.err }

// failed adds the operation to err. If ctx has ended, it also adds the cause.
func failed(ctx context.Context, doing string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	return &changeError{doing: doing, err: err}
}
