package liqopeer

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	checkEvery  = 15 * time.Second
	checkWithin = 5 * time.Second
)

// checks contains health checks for the API servers that this cluster connects to.
type checks struct {
	mu    sync.Mutex
	known map[string]*check // by provider ID
	wg    sync.WaitGroup
}

type check struct {
	of   [sha256.Size]byte // hash of the kubeconfig
	due  time.Time
	busy bool
	said bool // the first check has finished
	why  error
}

// wait waits until no check is running.
func (c *checks) wait() { c.wg.Wait() }

// ask returns the last known health of a provider's API server. said is false until the first check has finished.
// Checks run in the background: immediately for a new kubeconfig, and then every 15 s.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/core/foreigncluster-controller/apiserverchecker.go and
// pkg/liqo-controller-manager/flags.go (--foreign-cluster-ping-interval, --foreign-cluster-ping-timeout).
func (c *checks) ask(ctx context.Context, name string, kubeconfig []byte) (said bool, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := sha256.Sum256(kubeconfig)
	this := c.known[name]
	if this == nil || this.of != of {
		this = &check{of: of}
		c.known[name] = this
	}
	if !this.busy && !time.Now().Before(this.due) {
		this.busy = true
		c.wg.Add(1)
		go c.run(context.WithoutCancel(ctx), this, kubeconfig)
	}
	return this.said, this.why
}

func (c *checks) run(ctx context.Context, this *check, kubeconfig []byte) {
	defer c.wg.Done()
	err := alive(ctx, kubeconfig)
	c.mu.Lock()
	defer c.mu.Unlock()
	this.busy, this.said, this.why, this.due = false, true, err, time.Now().Add(checkEvery)
}

// alive sends a request to the API server in kubeconfig and returns the error.
func alive(ctx context.Context, kubeconfig []byte) error {
	config, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	config.Timeout = checkWithin
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	_, err = client.Discovery().RESTClient().Get().AbsPath("/livez").DoRaw(ctx)
	return err
}
