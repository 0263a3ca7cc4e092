package cluster

import (
	"context"

	"k8s.io/client-go/dynamic"
)

// Dynamic returns a client with the cluster's connections and credentials. Only cluster/chart is allowed to use it, for
// lookups in templates. Its reads are not tracked, and its writes are not audited.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Served returns all kinds that the cluster serves, in each of their versions, without subresources. The result is
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
