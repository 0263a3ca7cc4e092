package cluster

import (
	"context"
	"encoding/json"
	"io"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"carrick/cluster/failure"
)

const pageSize = 500

// request returns a request for the object of a read. If single is false, it returns a request for the collection that
// contains the object.
func (r *read) request(single bool) *rest.Request {
	path := []string{"/api", r.key.gvr.Version}
	if r.key.gvr.Group != "" {
		path = []string{"/apis", r.key.gvr.Group, r.key.gvr.Version}
	}
	if r.key.namespace != "" {
		path = append(path, "namespaces", r.key.namespace)
	}
	path = append(path, r.key.gvr.Resource)
	if single {
		path = append(path, r.key.name)
	}
	req := r.c.api.Get().AbsPath(path...).MaxRetries(0)
	if single {
		return req
	}
	selector := r.key.selector
	if r.key.name != "" {
		selector.Fields = fields.OneTermEqualSelector(metav1.ObjectNameField, r.key.name).String()
	}
	if selector.Labels != "" {
		req.Param("labelSelector", selector.Labels)
	}
	if selector.Fields != "" {
		req.Param("fieldSelector", selector.Fields)
	}
	return req
}

// fetch sends the read's request once: GET for one object, LIST for a list.
func (r *read) fetch(ctx context.Context) (map[string]record, error) {
	ctx, cancel := r.c.bounded(ctx)
	defer cancel()
	if r.key.name == "" {
		records, _, err := r.list(ctx)
		return records, err
	}
	body, err := slurp(ctx, r.request(true))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, failure.NotJSON(err)
	}
	records := map[string]record{}
	r.collect(records, object)
	return records, nil
}

// list lists the collection page by page and returns the records and the resource version of the collection.
func (r *read) list(ctx context.Context) (map[string]record, string, error) {
	records := map[string]record{}
	for next := ""; ; {
		req := r.request(false).Param("limit", strconv.Itoa(pageSize))
		if next != "" {
			req.Param("continue", next)
		}
		body, err := slurp(ctx, req)
		if err != nil {
			return nil, "", err
		}
		page := &unstructured.UnstructuredList{}
		if err := page.UnmarshalJSON(body); err != nil {
			return nil, "", failure.NotJSON(err)
		}
		for i := range page.Items {
			r.collect(records, &page.Items[i])
		}
		if next = page.GetContinue(); next == "" {
			return records, page.GetResourceVersion(), nil
		}
	}
}

// collect adds an object to the records if the read requested it. A response can contain other objects, because not
// every API supports field selectors.
func (r *read) collect(records map[string]record, object *unstructured.Unstructured) {
	if r.asked(object) {
		records[recordKey(object)] = r.take(object)
	}
}

func (r *read) asked(object *unstructured.Unstructured) bool {
	return (r.key.name == "" || r.key.name == object.GetName()) &&
		(r.key.namespace == "" || r.key.namespace == object.GetNamespace())
}

func recordKey(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}

// slurp reads a response body and returns an error if it is not JSON.
func slurp(ctx context.Context, req *rest.Request) ([]byte, error) {
	stream, err := req.Stream(ctx)
	if err != nil {
		return nil, caused(ctx, err)
	}
	defer stream.Close()
	body, err := io.ReadAll(stream)
	switch {
	case err != nil:
		return nil, caused(ctx, err)
	case !json.Valid(body):
		return nil, failure.Unreadable(body, nil)
	}
	return body, nil
}

// caused returns the cause of ctx if ctx has ended. Otherwise it returns err.
func caused(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
