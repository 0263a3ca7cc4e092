package plane

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

// Times of the namespace controller. Upstream's controller waits five seconds before it empties a namespace, because
// several API servers and etcd members might not know of the deletion yet (kubernetes/kubernetes:
// namespaceDeletionGracePeriod in pkg/controller/namespace/namespace_controller.go). There is one of each here.
const (
	emptyAfter = 200 * time.Millisecond
	emptyAgain = 200 * time.Millisecond // while objects in the namespace are being deleted
	emptyMost  = 2 * time.Second        // longest interval between two attempts
	workers    = 4
)

// namespaces empties and finalizes deleted namespaces with upstream's code, in place of the controller manager's
// namespace controller.
type namespaces struct {
	deleter deletion.NamespacedResourcesDeleterInterface
	queue   workqueue.TypedRateLimitingInterface[string]
}

// runNamespaces starts the namespace controller. The returned function stops it and waits until it has stopped.
func (p *Plane) runNamespaces() (stop func(), err error) {
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(p.Config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(p.life)
	n := namespaces{
		deleter: deletion.NewNamespacedResourcesDeleter(
			ctx, client.CoreV1().Namespaces(), objects, client.CoreV1(),
			client.Discovery().ServerPreferredNamespacedResources, corev1.FinalizerKubernetes,
		),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](emptyAgain, emptyMost),
		),
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	if _, err := factory.Core().V1().Namespaces().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    n.seen,
		UpdateFunc: func(_, now any) { n.seen(now) },
	}); err != nil {
		cancel()
		return nil, err
	}
	factory.Start(ctx.Done())
	context.AfterFunc(ctx, n.queue.ShutDown)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() { n.work(ctx) })
	}
	return func() {
		cancel()
		factory.Shutdown()
		working.Wait()
	}, nil
}

func (n namespaces) seen(object any) {
	if namespace, ok := object.(*corev1.Namespace); ok && namespace.DeletionTimestamp != nil {
		n.queue.AddAfter(namespace.Name, emptyAfter)
	}
}

func (n namespaces) work(ctx context.Context) {
	for {
		name, done := n.queue.Get()
		if done {
			return
		}
		if err := n.deleter.Delete(ctx, name); err == nil || errors.Is(err, context.Canceled) {
			n.queue.Forget(name)
		} else {
			n.queue.AddRateLimited(name)
		}
		n.queue.Done(name)
	}
}
