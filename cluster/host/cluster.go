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

// clusters contains the clusters of a host's kubeconfigs, by a hash of the kubeconfig's content.
type clusters struct {
	mu     sync.Mutex
	closed bool
	byHash map[[sha256.Size]byte]*cluster.Cluster
}

// Cluster returns the cluster of the current context of a kubeconfig on the host, with the credentials in that
// kubeconfig. The files that the kubeconfig refers to (certificate-authority, client-certificate, client-key,
// tokenFile) are read on the host. Relative paths are relative to the kubeconfig's directory. All files are tracked, as
// by Read. The same content returns the same *Cluster. Closing the host closes the cluster.
//
// Apart from references to files, the kubeconfig is parsed as strictly as by kubeconfig.Parse. If it violates a rule or
// refers to a file that does not exist, the error is a kubeconfig.Error. If it has a proxy, the error is
// failure.ErrProxy. If carrick is not permitted to read a file, the error is fs.ErrPermission.
func (h *Host) Cluster(ctx context.Context, kubeconfig string) (*cluster.Cluster, error) {
	k, err := h.kubeconfig(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}
	return h.clusters.open(k, h.options)
}

// kubeconfig reads a kubeconfig and the files that it refers to.
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

// Retry makes the clusters of the host's kubeconfigs repeat the requests that were rejected or not answered.
func (h *Host) Retry() {
	for _, c := range h.clusters.all() {
		c.Retry()
	}
}
