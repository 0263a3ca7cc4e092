package cluster

import (
	"context"

	"k8s.io/client-go/dynamic"
)

// Dynamic is a client over the cluster's own connections and credentials. It is
// for cluster/chart only, whose templates may look objects up: what is read by
// it is not tracked, and what is written not audited.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Served returns every kind that the cluster serves, in each of its versions,
// without subresources. It is asked once and kept (see Resource).
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
