package check

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
	"carrick/steps"
)

// Written is when a key of a ConfigMap came to be as it is.
type Written struct {
	Changed time.Time
	Made    metav1.Time // of the ConfigMap, where the key is as it was at first; else zero
}

// KeyWritten tells when a key of a ConfigMap came to be as it is. It is a request
// of its own: reads that are kept current leave out who wrote what.
func KeyWritten(ctx context.Context, c *cluster.Cluster, namespace, name, key string) (Written, error) {
	found, err := c.Find(ctx, ConfigMaps, namespace, cluster.Selector{Fields: "metadata.name=" + name})
	if err != nil {
		return Written{}, err
	}
	if len(found) == 0 {
		return Written{}, steps.Absent("there is no ConfigMap %s/%s any more", namespace, name)
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

// KeySince returns since when a key under data has its value, by the managed fields of its object; zero where they do
// not say so. Whoever writes the value that is there already owns the key as well, and does not change it: the first
// counts.
func KeySince(fields []metav1.ManagedFieldsEntry, key string) time.Time {
	var first time.Time
	for _, f := range fields {
		if f.Time != nil && steps.OwnsKey(f, key) && (first.IsZero() || f.Time.Time.Before(first)) {
			first = f.Time.Time
		}
	}
	return first
}
