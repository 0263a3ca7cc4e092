package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"
)

// hostClusters are the clusters that kubeconfigs of a host lead to, by content.
type hostClusters struct {
	mu     sync.Mutex
	closed bool
	byHash map[[sha256.Size]byte]*Cluster
}

// Cluster returns the cluster that the current context of a kubeconfig on the host leads to, seen with nothing but that.
// What the kubeconfig refers to (certificate-authority, client-certificate, client-key, tokenFile) is read on the host,
// relative paths from the kubeconfig's folder on; all that is read is tracked as by Read. It is parsed strictly in all
// else: what ParseKubeconfig refuses is a KubeconfigError here, too, and so is a reference that leads nowhere; one with a
// proxy is ErrProxy. A file that may not be read is fs.ErrPermission. The same content gives the same *Cluster; it is
// closed with the host.
func (h *Host) Cluster(ctx context.Context, kubeconfig string) (*Cluster, error) {
	k, err := h.kubeconfig(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}
	if k.ProxyURL != "" {
		return nil, ErrProxy
	}
	return h.clusters.open(k, h.options)
}

// kubeconfig reads a kubeconfig and all that it refers to.
func (h *Host) kubeconfig(ctx context.Context, name string) (Kubeconfig, error) {
	data, err := h.Read(ctx, name)
	if err != nil {
		return Kubeconfig{}, err
	}
	files := referredFiles{h: h, ctx: ctx, folder: path.Dir(name)}
	p := &kubeconfigParser{}
	p.file = func(at *yaml.Node, key string) ([]byte, bool) { return files.read(p, at, key) }
	k := p.parse(data)
	switch {
	case files.failed != nil:
		return Kubeconfig{}, files.failed
	case len(p.problems) > 0:
		return Kubeconfig{}, KubeconfigError{Problems: p.sorted()}
	}
	return k, nil
}

// referredFiles are the files that a kubeconfig on a host refers to.
type referredFiles struct {
	h      *Host
	ctx    context.Context
	folder string
	failed error // why one could not be looked at
}

func (r *referredFiles) read(p *kubeconfigParser, at *yaml.Node, key string) ([]byte, bool) {
	if at.Kind != yaml.ScalarNode || at.ShortTag() != "!!str" || at.Value == "" {
		p.say(at, RuleWrongType, "%s must be the path of a file", key)
		return nil, false
	}
	name := at.Value
	if !path.IsAbs(name) {
		name = path.Join(r.folder, name)
	}
	data, err := r.h.Read(r.ctx, name)
	switch {
	case err == nil:
		return data, true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotRegular):
		p.say(at, RuleFileReference, "%s is %s: %v", key, name, bareCause(err))
	case r.failed == nil:
		r.failed = fmt.Errorf("%s of the kubeconfig: %w", key, err)
	}
	return nil, false
}

// bareCause is an error of Read without the path, which stands beside it.
func bareCause(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}

func (c *hostClusters) open(k Kubeconfig, o HostOptions) (*Cluster, error) {
	sum := sha256.Sum256([]byte(k.Bytes().Reveal()))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if known, ok := c.byHash[sum]; ok {
		return known, nil
	}
	out, err := open(configOf(k), Access{Timeout: o.Timeout}, o.Clusters, nil)
	if err != nil {
		return nil, err
	}
	out.namespace = cmp.Or(k.Namespace, "default")
	if c.byHash == nil {
		c.byHash = map[[sha256.Size]byte]*Cluster{}
	}
	c.byHash[sum] = out
	return out, nil
}

func (c *hostClusters) all() []*Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.byHash))
}

func (c *hostClusters) close() {
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
