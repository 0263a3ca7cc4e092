package check

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
	"carrick/steps"
)

// Written is the time of the last change to a key of a ConfigMap.
type Written struct {
	Changed time.Time
	Made    metav1.Time // creation time of the ConfigMap, or zero if the key has changed since
}

// KeyWritten returns when a key of a ConfigMap was last changed. It sends its own request, because live reads omit
// managedFields.
func KeyWritten(ctx context.Context, c *cluster.Cluster, namespace, name, key string) (Written, error) {
	found, err := c.Find(ctx, ConfigMaps, namespace, cluster.Selector{Fields: "metadata.name=" + name})
	if err != nil {
		return Written{}, err
	}
	if len(found) == 0 {
		return Written{}, steps.Absent("ConfigMap %s/%s no longer exists", namespace, name)
	}
	first := KeySince(found[0].ManagedFields, key)
	made := found[0].CreationTimestamp
	switch {
	case first.IsZero():
		return Written{made.Time, made}, nil
	case first.Equal(made.Time):
		return Written{first, made}, nil
	}
	return Written{Changed: first}, nil
}

// KeySince returns when a key under data got its current value. It reads the managedFields of the object and returns
// zero if they don't contain the key. A manager that writes the existing value becomes a co-owner without changing the
// value, so the earliest entry counts.
func KeySince(fields []metav1.ManagedFieldsEntry, key string) time.Time {
	var first time.Time
	for _, f := range fields {
		if f.Time != nil && steps.OwnsKey(f, key) && (first.IsZero() || f.Time.Time.Before(first)) {
			first = f.Time.Time
		}
	}
	return first
}
