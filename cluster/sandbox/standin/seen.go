package standin

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// Seen is a cache of a cluster's objects. Watches keep it current, so that reads send no requests. It watches a kind
// from the first read of that kind. The API server and the kinds that it serves can disappear and return. While a kind
// cannot be listed, reads return the API server's error.
//
// Informers in client-go behave differently. They keep old objects while the API server is unreachable, do not report
// refused connections, and retry a kind that is not served yet with a backoff of up to 30 seconds.
//
// The cache lags behind the API server. Callers that write must handle conflicts and existing objects.
type Seen struct {
	client dynamic.Interface
	ctx    context.Context // done after Close
	cancel context.CancelFunc
	all    sync.WaitGroup

	changed chan struct{} // receives after any change

	mu    sync.Mutex
	kinds map[schema.GroupVersionResource]*seenKind
}

type seenKind struct {
	once  sync.Once
	first chan struct{} // closed after the first list

	mu      sync.Mutex
	objects map[seenName]*unstructured.Unstructured // objects are replaced, never modified
	err     error                                   // error from the last list
}

type seenName struct{ namespace, name string }

// See returns a cache that stays current until Close is called or ctx is done.
func See(ctx context.Context, client dynamic.Interface) *Seen {
	s := &Seen{client: client, changed: make(chan struct{}, 1), kinds: map[schema.GroupVersionResource]*seenKind{}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Close stops the watches. The cache must not be used afterwards.
func (s *Seen) Close() {
	s.cancel()
	s.all.Wait()
}

// List returns objects of a kind as the API server does: sorted, and filtered by namespace ("" means all) and label
// selector. The caller can modify the returned objects.
func (s *Seen) List(
	ctx context.Context, of schema.GroupVersionResource, namespace, selector string,
) ([]unstructured.Unstructured, error) {
	matches, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	k := s.kind(of)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-k.first:
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return nil, k.err
	}
	var found []unstructured.Unstructured
	for name, o := range k.objects {
		if (namespace == "" || name.namespace == namespace) && matches.Matches(labels.Set(o.GetLabels())) {
			found = append(found, *o.DeepCopy())
		}
	}
	slices.SortFunc(found, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return found, nil
}

// Listed is like Seen.List, but converts the objects to T.
func Listed[T any](
	ctx context.Context, s *Seen, of schema.GroupVersionResource, namespace, selector string,
) ([]T, error) {
	found, err := s.List(ctx, of, namespace, selector)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(found))
	for i := range found {
		if err := into(&found[i], &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Got returns one cached object. If it does not exist, Got returns the API server's NotFound error.
func Got[T any](ctx context.Context, s *Seen, of schema.GroupVersionResource, namespace, name string) (*T, error) {
	found, err := s.List(ctx, of, namespace, "")
	if err != nil {
		return nil, err
	}
	for i := range found {
		if found[i].GetName() == name {
			got := new(T)
			return got, into(&found[i], got)
		}
	}
	return nil, apierrors.NewNotFound(of.GroupResource(), name)
}

func into(o *unstructured.Unstructured, to any) error {
	data, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// kind returns the cache of a kind. The first call starts a watch.
func (s *Seen) kind(of schema.GroupVersionResource) *seenKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[of]
	if k == nil {
		k = &seenKind{first: make(chan struct{})}
		s.kinds[of] = k
		s.all.Go(func() { k.follow(s.ctx, s.client.Resource(of), s.tell) })
	}
	return k
}

// tell sends to changed without blocking.
func (s *Seen) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// follow lists and watches the objects. When the watch ends, it lists them again. It calls tell after each list,
// because objects can change between two watches.
func (k *seenKind) follow(ctx context.Context, client dynamic.ResourceInterface, tell func()) {
	for ctx.Err() == nil {
		if from, err := k.list(ctx, client); err == nil {
			tell()
			k.watch(ctx, client, from, tell)
		}
		select {
		case <-ctx.Done():
		case <-time.After(LookEvery):
		}
	}
}

// list caches all objects. It returns the resource version to watch from.
func (k *seenKind) list(ctx context.Context, client dynamic.ResourceInterface) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	found, err := client.List(ctx, metav1.ListOptions{})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects, k.err = map[seenName]*unstructured.Unstructured{}, err
	if err == nil {
		version = found.GetResourceVersion()
		for i := range found.Items {
			k.objects[nameOf(&found.Items[i])] = &found.Items[i]
		}
	}
	k.once.Do(func() { close(k.first) })
	return version, err
}

// watch updates the cache until the watch ends.
func (k *seenKind) watch(ctx context.Context, client dynamic.ResourceInterface, from string, tell func()) {
	changes, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true})
	if err != nil {
		return
	}
	defer changes.Stop()
	defer context.AfterFunc(ctx, changes.Stop)()
	for change := range changes.ResultChan() {
		o, is := change.Object.(*unstructured.Unstructured)
		if change.Type == watch.Error || !is {
			return
		}
		k.mu.Lock()
		switch change.Type {
		case watch.Added, watch.Modified:
			k.objects[nameOf(o)] = o
		case watch.Deleted:
			delete(k.objects, nameOf(o))
		}
		k.mu.Unlock()
		if change.Type != watch.Bookmark {
			tell()
		}
	}
}

func nameOf(o *unstructured.Unstructured) seenName {
	return seenName{o.GetNamespace(), o.GetName()}
}
