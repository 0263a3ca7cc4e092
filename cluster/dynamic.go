package cluster

import (
	"context"

	"k8s.io/client-go/dynamic"
)

// Dynamic returns a client that uses the cluster's connections and credentials. It is for cluster/chart only, whose
// templates may look up objects: its reads are not tracked, and its writes are not audited.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Served returns every kind that the cluster serves, in each of its versions, without subresources. The result is
// cached (see Resource).
func (c *Cluster) Served(ctx context.Context) ([]Kind, error) {
	c.change.mu.Lock()
	known := c.change.served
	c.change.mu.Unlock()
	if known != nil {
		return known.all(), nil
	}
	now, err := c.discover(ctx)
	return now.all(), err
}
