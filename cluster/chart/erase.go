package chart

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
)

// erase deletes the object that live describes and waits until the object no longer exists. It does not delete an
// object with another UID.
func erase(ctx context.Context, c *cluster.Cluster, live *unstructured.Unstructured) error {
	gvr, _, err := c.Resource(ctx, live.GroupVersionKind())
	if err != nil {
		return err
	}
	if err := c.Delete(ctx, gvr, live.GetNamespace(), live.GetName(), live.GetUID()); err != nil {
		return err
	}
	return c.Gone(ctx, gvr, live.GetNamespace(), live.GetName(), live.GetUID())
}

// instances describes how many custom resources of a CustomResourceDefinition exist, or returns "" if there are none.
func instances(ctx context.Context, c *cluster.Cluster, crd string) (string, error) {
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return "", err
	}
	for _, k := range kinds {
		if k.GVR.GroupResource().String() != crd {
			continue
		}
		list, err := c.Find(ctx, k.GVR, "", cluster.Selector{})
		if err != nil {
			return "", err
		}
		if len(list) > 0 {
			return fmt.Sprintf(
				"deleting it would delete its objects: %d, such as %s %s/%s", len(list), k.GVK.Kind, list[0].Namespace,
				list[0].Name,
			), nil
		}
	}
	return "", nil
}
