package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
)

// UpdateStatus changes the status of an object. change modifies the current object, and returns false if no update is
// necessary. If another client changes the object at the same time, UpdateStatus reads the object and calls change
// again.
func (c *Cluster) UpdateStatus(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name, manager string,
	change func(*unstructured.Unstructured) (bool, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout())
	defer cancel()
	doing := "change the status of " + location{gvr: gvr, namespace: namespace, name: name}.String()
	on := c.dynamic.Resource(gvr).Namespace(namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		o, err := on.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if changes, err := change(o); err != nil || !changes {
			return err
		}
		_, err = on.UpdateStatus(ctx, o, metav1.UpdateOptions{FieldManager: manager})
		return err
	})
	if err != nil {
		return failed(ctx, doing, err)
	}
	return nil
}
