package extension

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	workers = 4
	// resyncPeriod is the maximum time until a deleted object is recreated.
	resyncPeriod = 10 * time.Minute
	maxBackoff   = time.Minute
)

var (
	namespaceKind = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	profileKind   = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "profiles"}
	bindingKind   = schema.GroupVersionResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings",
	}
)

// follower creates missing objects for the namespaces of profiles. If there are several replicas, only the holder of
// the lease creates objects. A new holder first processes all existing namespaces.
type follower struct {
	Profiles
	log     *slog.Logger
	metrics *metrics
	client  dynamic.Interface
	leases  coordinationv1.LeasesGetter
	elects  bool
	in, at  string // namespace and name of the lease
	who     string
}

func newFollower(o Options, m *metrics) (*follower, error) {
	config, err := clientConfig(o.Kubeconfig, o.Context)
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	config.QPS = -1 // no client-side limit, because the API server limits the rate (API priority and fairness)
	config.UserAgent = "carrick-vsphere-extension"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	klog.SetSlogLogger(o.Log)
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	f := &follower{
		Profiles: o.Profiles, log: o.Log, metrics: m, client: client, leases: leases, elects: o.Elects,
		who: host + "_" + string(uuid.NewUUID()),
	}
	f.in, f.at = o.lease()
	return f, nil
}

// clientConfig returns the configuration of a kubeconfig context. If file and name are "", it returns the in-cluster
// configuration.
func clientConfig(file, name string) (*rest.Config, error) {
	if file == "" && name == "" {
		return rest.InClusterConfig()
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	overrides := &clientcmd.ConfigOverrides{CurrentContext: name}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
}

// run creates missing objects until ctx ends. With leader election, it waits for the lease and creates objects only
// while it holds the lease.
func (f *follower) run(ctx context.Context) error {
	if !f.elects {
		f.lead(ctx)
		f.metrics.leads.Set(0)
		return nil
	}
	for ctx.Err() == nil {
		var term sync.WaitGroup
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: named(f.in, f.at), Client: f.leases, LockConfig: resourcelock.ResourceLockConfig{Identity: f.who},
			},
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			ReleaseOnCancel: true, Name: f.at,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { term.Go(func() { f.lead(ctx) }) },
				OnStoppedLeading: func() { f.metrics.leads.Set(0) },
			},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
		term.Wait()
	}
	return nil
}

// lead processes all namespaces and profiles, and then each one that changes.
func (f *follower) lead(ctx context.Context) {
	f.log.Info("leading", "who", f.who)
	f.metrics.leads.Set(1)
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, maxBackoff),
	)
	namespaces, profiles := f.mirror(namespaceKind, queue), f.mirror(profileKind, queue)
	var all sync.WaitGroup
	for _, m := range []cache.SharedIndexInformer{namespaces, profiles} {
		all.Go(func() { m.RunWithContext(ctx) })
	}
	// The Profile CRD might not be served yet. Until then there is nothing to do.
	if cache.WaitForCacheSync(ctx.Done(), namespaces.HasSynced, profiles.HasSynced) {
		f.log.Info(
			"following profiles", "namespaces", len(namespaces.GetStore().ListKeys()), "profiles",
			len(profiles.GetStore().ListKeys()),
		)
		for range workers {
			all.Go(func() {
				for f.next(ctx, queue, namespaces.GetStore(), profiles.GetStore()) {
				}
			})
		}
		<-ctx.Done()
	}
	queue.ShutDown()
	all.Wait()
}

// mirror caches the objects of a kind without unused fields, and adds the name of each object that changes to the
// queue.
func (f *follower) mirror(
	kind schema.GroupVersionResource, queue workqueue.TypedInterface[string],
) cache.SharedIndexInformer {
	of := f.client.Resource(kind)
	m := cache.NewSharedIndexInformer(
		&cache.ListWatch{ListWithContextFunc: listOf(of), WatchFuncWithContext: of.Watch}, &unstructured.Unstructured{},
		resyncPeriod, nil,
	)
	put := func(v any) {
		if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(v); err == nil {
			queue.Add(name)
		}
	}
	// These functions return errors only after the informer has started.
	_ = m.SetTransform(stripped)
	_ = m.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		f.log.Warn("cannot watch, retrying", "kind", kind.GroupResource().String(), "error", err)
	})
	_, _ = m.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: put, UpdateFunc: func(_, v any) { put(v) }})
	return m
}

// next processes one name from the queue. It returns false when the queue is shut down.
func (f *follower) next(
	ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], namespaces, profiles cache.Store,
) bool {
	name, over := queue.Get()
	if over {
		return false
	}
	defer queue.Done(name)
	err := f.createMissing(ctx, stored(namespaces, name), stored(profiles, name))
	if err == nil {
		queue.Forget(name)
		return true
	}
	if ctx.Err() == nil {
		f.metrics.failed.Inc()
		f.log.Warn("failed, retrying", "namespace", name, "error", err)
		queue.AddRateLimited(name)
	}
	return true
}

// stored returns the object with the given name, or nil if it does not exist.
func stored(s cache.Store, name string) *unstructured.Unstructured {
	v, _, _ := s.GetByKey(name)
	o, _ := v.(*unstructured.Unstructured)
	return o
}
