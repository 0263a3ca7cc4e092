package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/permission"
)

// Cluster is a client for one Kubernetes cluster with the credentials of one identity. It is safe for concurrent use.
// Close stops all its goroutines.
type Cluster struct {
	context   string
	namespace string
	config    *rest.Config      // QPS -1, no Timeout
	http      *http.Client      // authenticates; no timeout
	api       *rest.RESTClient  // requests use absolute paths
	dynamic   dynamic.Interface // uses the connections of http
	timeout   time.Duration     // timeout of each request except watches; see bounded
	options   Options
	wire      *wire
	gate      *gate
	bodies    *bodies

	plugin plugin

	change changeState

	life    context.Context // canceled by Close
	end     context.CancelCauseFunc
	work    sync.WaitGroup // every goroutine of the cluster
	outages breaker

	listsFirst atomic.Bool // set if the API server does not support streaming lists

	mu     sync.Mutex
	closed bool
	reads  map[readKey]*read
	needed map[permission.Rule]bool // see Need
	later  map[permission.Rule]bool // rules without verbs; see WillRead
	seenAs map[[sha256.Size]byte]*Cluster
	ahead  map[serverAndCA]*Cluster // clients without credentials; see Ahead
	grants *grants                  // shared with the clusters that As creates
	twin   *Cluster                 // a client of the same API server with other credentials; nil: none known
	atEnd  []func()
}

// Open creates a client for the kubeconfig context that a.Context names. It sends no request and starts no exec plugin.
func Open(a kubeconfig.Access, o Options) (*Cluster, error) {
	found, err := kubeconfig.Load(a)
	if err != nil {
		return nil, err
	}
	c, err := open(found.Config, a, o, nil)
	if err != nil {
		return nil, fmt.Errorf("context %q: %w", found.Context, err)
	}
	c.context, c.namespace = found.Context, cmp.Or(found.Namespace, "default")
	return c, nil
}

// New creates a client for the cluster in cfg, without a context name. It sends no request. New copies cfg and ignores
// the rate limits and the timeout in cfg.
func New(cfg *rest.Config, o Options) (*Cluster, error) {
	return open(cfg, kubeconfig.Access{}, o, nil)
}

// OpenKubeconfig creates a client for the cluster in a parsed kubeconfig. It sends no request. timeout limits each
// request; 0 means 10 s. If the kubeconfig has a proxy, the error is failure.ErrProxy.
func OpenKubeconfig(k kubeconfig.Config, timeout time.Duration, o Options) (*Cluster, error) {
	if k.ProxyURL != "" {
		return nil, failure.ErrProxy
	}
	return openKubeconfig(k, timeout, o, nil)
}

func openKubeconfig(k kubeconfig.Config, timeout time.Duration, o Options, over *Cluster) (*Cluster, error) {
	c, err := open(kubeconfig.RESTConfig(k), kubeconfig.Access{Timeout: timeout}, o, over)
	if err != nil {
		return nil, err
	}
	c.namespace = cmp.Or(k.Namespace, "default")
	return c, nil
}

// open creates a client for the cluster in cfg. If over is not nil, the client reuses the connections of over. over
// must be a client without credentials for the same API server.
func open(cfg *rest.Config, a kubeconfig.Access, o Options, over *Cluster) (*Cluster, error) {
	silenceKlog()
	timeout := cmp.Or(a.Timeout, usualTimeout)
	c := &Cluster{
		namespace: "default",
		timeout:   timeout,
		options:   o.withDefaults().withTimeoutOf(timeout),
		reads:     map[readKey]*read{},
		seenAs:    map[[sha256.Size]byte]*Cluster{},
		ahead:     map[serverAndCA]*Cluster{},
		grants:    &grants{},
	}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.outages.c = c
	c.config = dynamic.ConfigFor(cfg)
	c.config.QPS, c.config.RateLimiter, c.config.Timeout = -1, nil, 0
	c.config.UserAgent = "carrick"
	c.config.WarningHandler = rest.NoWarnings{}
	if a.Stderr != nil {
		c.config.WarningHandler = &warnings{to: a.Stderr, said: map[string]bool{}}
	}
	if err := c.connect(a.Stderr, over); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// connect creates the HTTP and API clients but opens no connection.
func (c *Cluster) connect(stderr io.Writer, over *Cluster) error {
	var err error
	if c.http, err = c.client(stderr, over); err != nil {
		return err
	}
	if c.api, err = rest.UnversionedRESTClientForConfigAndClient(c.config, c.http); err != nil {
		return err
	}
	c.dynamic = dynamic.New(c.api)
	return nil
}

// Close stops all reads and goroutines of the cluster and closes its connections. It also closes the clusters that As
// created. Later reads return failure.ErrClosed. Close wakes all callers that wait for a change.
func (c *Cluster) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	others, atEnd := slices.Collect(maps.Values(c.seenAs)), c.atEnd
	others = slices.AppendSeq(others, maps.Values(c.ahead))
	for _, r := range c.reads {
		r.version.Bump()
	}
	c.mu.Unlock()
	for _, other := range others {
		other.Close()
	}
	c.end(failure.ErrClosed)
	c.work.Wait()
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	if c.wire != nil {
		c.wire.end()
	}
	c.plugin.close()
	for _, end := range atEnd {
		end()
	}
}

// Context returns the name of the kubeconfig context, or "" for a cluster created by New or As.
func (c *Cluster) Context() string { return c.context }

// Server returns the URL of the API server.
func (c *Cluster) Server() string { return c.config.Host }

// Namespace returns the context's namespace, or "default" if the context sets no namespace.
func (c *Cluster) Namespace() string { return c.namespace }

// CA returns the PEM bundle of the CAs that are trusted to sign the API server's certificate. It returns nil if the
// system's roots are used or if the CA file cannot be read.
func (c *Cluster) CA() []byte {
	if len(c.config.CAData) > 0 || c.config.CAFile == "" {
		return c.config.CAData
	}
	data, err := os.ReadFile(c.config.CAFile)
	if err != nil {
		c.options.Log.Warn("read the cluster's certificate authority", "file", c.config.CAFile, "err", err)
		return nil
	}
	return data
}

// As returns a client for the cluster in the given kubeconfig, with the credentials in that kubeconfig. The kubeconfig
// is parsed strictly (kubeconfig.Parse). If it has a proxy, the error is failure.ErrProxy. Equal bytes return the same
// *Cluster. Closing c also closes the returned cluster.
func (c *Cluster) As(config []byte) (*Cluster, error) {
	sum := sha256.Sum256(config)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, failure.ErrClosed
	}
	if other, ok := c.seenAs[sum]; ok {
		return other, nil
	}
	k, err := kubeconfig.Parse(config)
	if err != nil {
		return nil, err
	}
	if k.ProxyURL != "" {
		return nil, failure.ErrProxy
	}
	other, err := openKubeconfig(k, c.timeout, c.options, c.aheadOf(k))
	if err != nil {
		return nil, err
	}
	if sharedBy(k.Server, k.CA) == sharedBy(c.Server(), c.CA()) {
		other.twin = c
	}
	other.grants = c.grants
	c.seenAs[sum] = other
	return other, nil
}

// Timeout returns the maximum duration of one request.
func (c *Cluster) Timeout() time.Duration { return c.timeout }

// bounded returns ctx with the timeout for one request. It is not used for watches, which have no timeout. Closing the
// cluster also cancels the returned context.
func (c *Cluster) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { end(failure.ErrClosed) })
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, failure.ErrTimeout)
	return ctx, func() {
		cancel()
		stop()
		end(nil)
	}
}
