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

// clusters are the clusters of a host's kubeconfigs, by content.
type clusters struct {
	mu     sync.Mutex
	closed bool
	byHash map[[sha256.Size]byte]*cluster.Cluster
}

// Cluster returns the cluster of the current context of a kubeconfig on the host, accessed with the credentials in that
// kubeconfig only. Files that the kubeconfig refers to (certificate-authority, client-certificate, client-key,
// tokenFile) are read on the host, with relative paths resolved against the kubeconfig's folder. All files are tracked
// as by Read. Otherwise the kubeconfig is parsed strictly: what kubeconfig.Parse rejects is a kubeconfig.Error here,
// too, and so is a reference to a file that does not exist. A kubeconfig with a proxy returns failure.ErrProxy. A file
// without read permission returns fs.ErrPermission. The same content returns the same *Cluster; it is closed with the
// host.
func (h *Host) Cluster(ctx context.Context, kubeconfig string) (*cluster.Cluster, error) {
	k, err := h.kubeconfig(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}
	return h.clusters.open(k, h.options)
}

// kubeconfig reads a kubeconfig and all files that it refers to.
func (h *Host) kubeconfig(ctx context.Context, name string) (kubeconfig.Config, error) {
	data, err := h.Read(ctx, name)
	if err != nil {
		return kubeconfig.Config{}, err
	}
	return kubeconfig.ParseReferring(data, path.Dir(name), func(name string) (data []byte, unusable, err error) {
		data, err = h.Read(ctx, name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
			unusable, err = cmp.Or(errors.Unwrap(err), err), nil // the message already names the path
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

// Retry retries the requests that the clusters of the host's kubeconfigs refused or did not answer.
func (h *Host) Retry() {
	for _, c := range h.clusters.all() {
		c.Retry()
	}
}
