package world

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const lookEvery = 50 * time.Millisecond

var (
	accounts    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	apis        = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// Settle waits until the controllers have done what a fresh cluster needs
// before anyone can use it: the default service account exists, every node is
// ready, every API service and every Deployment is available.
func (c *Cluster) Settle(ctx context.Context) error {
	err := until(ctx, "the default service account of "+c.Side, func() (bool, error) {
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

// all waits until every object of a resource has a condition.
func (c *Cluster) all(ctx context.Context, resource schema.GroupVersionResource, condition string) error {
	what := fmt.Sprintf("every one of %s's %s to be %s", c.Side, resource.Resource, condition)
	err := until(ctx, what, func() (bool, error) {
		list, err := c.client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if !has(&list.Items[i], condition) {
				return false, fmt.Errorf("%s is not", list.Items[i].GetName())
			}
		}
		return true, nil
	})
	return err
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

// until calls look until it answers true, whatever errors come before. What it said last is part of the
// error.
func until(ctx context.Context, what string, look func() (bool, error)) error {
	for {
		ok, why := look()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (%v)", what, ctx.Err(), why)
		case <-time.After(lookEvery):
		}
	}
}
