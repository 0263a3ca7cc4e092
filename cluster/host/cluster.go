package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
)

// clusters are the clusters that kubeconfigs of a host lead to, by content.
type clusters struct {
	mu     sync.Mutex
	closed bool
	byHash map[[sha256.Size]byte]*cluster.Cluster
}

// Cluster returns the cluster that the current context of a kubeconfig on the host leads to, seen with nothing but
// that. What the kubeconfig refers to (certificate-authority, client-certificate, client-key, tokenFile) is read on the
// host, relative paths from the kubeconfig's folder on; all that is read is tracked as by Read. It is parsed strictly
// in all else: what kubeconfig.Parse refuses is a kubeconfig.Error here, too, and so is a reference that leads nowhere;
// one with a proxy is failure.ErrProxy. A file that may not be read is fs.ErrPermission. The same content gives the
// same *Cluster; it is closed with the host.
func (h *Host) Cluster(ctx context.Context, kubeconfig string) (*cluster.Cluster, error) {
	k, err := h.kubeconfig(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}
	return h.clusters.open(k, h.options)
}

// kubeconfig reads a kubeconfig and all that it refers to.
func (h *Host) kubeconfig(ctx context.Context, name string) (kubeconfig.Config, error) {
	data, err := h.Read(ctx, name)
	if err != nil {
		return kubeconfig.Config{}, err
	}
	return kubeconfig.ParseReferring(data, path.Dir(name), func(name string) (data []byte, unusable, err error) {
		data, err = h.Read(ctx, name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
			unusable, err = cmp.Or(errors.Unwrap(err), err), nil // the path is named already
		}
		return data, unusable, err
	})
}

func (c *clusters) open(k kubeconfig.Config, o Options) (*cluster.Cluster, error) {
	sum := sha256.Sum256([]byte(k.Bytes().Reveal()))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, failure.ErrClosed
	}
	if known, ok := c.byHash[sum]; ok {
		return known, nil
	}
	out, err := cluster.OpenKubeconfig(k, o.Timeout, o.Clusters)
	if err != nil {
		return nil, err
	}
	if c.byHash == nil {
		c.byHash = map[[sha256.Size]byte]*cluster.Cluster{}
	}
	c.byHash[sum] = out
	return out, nil
}

func (c *clusters) all() []*cluster.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.byHash))
}

func (c *clusters) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	for _, open := range c.all() {
		open.Close()
	}
}

// Retry asks again for what the clusters of the host's kubeconfigs refused or did not answer.
func (h *Host) Retry() {
	for _, c := range h.clusters.all() {
		c.Retry()
	}
}
