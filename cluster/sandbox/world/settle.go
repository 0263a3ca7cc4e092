package world

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	lookEvery  = 50 * time.Millisecond
	lookSeldom = 500 * time.Millisecond
)

var (
	accounts    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	apis        = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// Settle waits until a new cluster is usable. The default ServiceAccount must exist, all nodes must be ready, and all
// APIServices and Deployments must be available.
func (c *Cluster) Settle(ctx context.Context) error {
	err := Until(ctx, "the default ServiceAccount of "+c.Side, func() (bool, error) {
		_, err := c.client.Resource(accounts).Namespace("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
	if err != nil {
		return err
	}
	if err := c.all(ctx, nodes, "Ready"); err != nil {
		return err
	}
	if err := c.all(ctx, apis, "Available"); err != nil {
		return err
	}
	return c.all(ctx, deployments, "Available")
}

// Await waits until the workloads in objects have rolled out.
func (c *Cluster) Await(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		stands := standing[o.GetKind()]
		if stands == nil || o.GetAnnotations()[absent] != "" {
			continue
		}
		resource, err := c.resource(o)
		if err != nil {
			return err
		}
		err = Until(ctx, fmt.Sprintf("%s %s of %s", o.GetKind(), o.GetName(), c.Side), func() (bool, error) {
			now, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
			return err == nil && stands(now), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// served waits until the API server serves the kinds in the given CustomResourceDefinitions.
func (c *Cluster) served(ctx context.Context, definitions []*unstructured.Unstructured) error {
	for _, d := range definitions {
		group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		err := Until(ctx, fmt.Sprintf("%s to serve %s.%s", c.Side, kind, group), func() (bool, error) {
			_, err := c.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
			if err != nil {
				c.mapper.Reset()
			}
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// standing contains functions that report whether an object's status matches its spec, by kind.
var standing = map[string]func(*unstructured.Unstructured) bool{
	"APIService": func(o *unstructured.Unstructured) bool { return has(o, "Available") },
	"Deployment": func(o *unstructured.Unstructured) bool {
		want := number(o, "spec", "replicas")
		return observed(o) && want == number(o, "status", "replicas") &&
			want == number(o, "status", "updatedReplicas") && want == number(o, "status", "availableReplicas")
	},
	"DaemonSet": func(o *unstructured.Unstructured) bool {
		want := number(o, "status", "desiredNumberScheduled")
		return observed(o) && want == number(o, "status", "updatedNumberScheduled") &&
			want == number(o, "status", "numberReady")
	},
}

func observed(o *unstructured.Unstructured) bool {
	return number(o, "status", "observedGeneration") >= o.GetGeneration()
}

// number returns an integer field, or 0 if it does not exist.
func number(o *unstructured.Unstructured, fields ...string) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, fields...)
	return n
}

// all waits until every object of a resource has the given condition.
func (c *Cluster) all(ctx context.Context, resource schema.GroupVersionResource, condition string) error {
	return c.every(ctx, resource, condition, func(o *unstructured.Unstructured) bool { return has(o, condition) })
}

// every waits until the function is returns true for every object of a resource.
func (c *Cluster) every(
	ctx context.Context, resource schema.GroupVersionResource, how string, is func(*unstructured.Unstructured) bool,
) error {
	what := fmt.Sprintf("each of %s's %s to be %s", c.Side, resource.Resource, how)
	return Until(ctx, what, func() (bool, error) {
		list, err := c.client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if !is(&list.Items[i]) {
				return false, fmt.Errorf("%s is not", list.Items[i].GetName())
			}
		}
		return true, nil
	})
}

func has(object *unstructured.Unstructured, condition string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		fields, ok := entry.(map[string]any)
		if ok && fields["type"] == condition {
			return fields["status"] == "True"
		}
	}
	return false
}

// Until retries look with increasing intervals until it returns true. It ignores errors from look. If ctx is done
// first, its error includes the last error from look.
func Until(ctx context.Context, what string, look func() (bool, error)) error {
	for wait := lookEvery; ; wait = min(wait*5/4, lookSeldom) {
		ok, why := look()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (%v)", what, ctx.Err(), why)
		case <-time.After(wait):
		}
	}
}
