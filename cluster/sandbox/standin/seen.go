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

// Seen is what a cluster holds, as watches tell it: a look at it costs the API
// server nothing. A kind is watched from when it is first asked for. Kinds may
// come and go, and so may the API server: while a kind cannot be listed, the
// API server's own error is the answer.
//
// It is no informer of client-go: those keep what they had while the API server
// is away, tell a refused connection to nobody, and ask for a kind that is not
// served yet at ever longer intervals, up to half a minute.
//
// It lags behind by what a watch takes. Who writes by it must bear a conflict,
// and that something is there already.
type Seen struct {
	client dynamic.Interface
	ctx    context.Context // until Close
	cancel context.CancelFunc
	all    sync.WaitGroup

	changed chan struct{} // filled after a change of any kind that is watched

	mu    sync.Mutex
	kinds map[schema.GroupVersionResource]*seenKind
}

// seenKind is what is known of one kind.
type seenKind struct {
	once  sync.Once
	first chan struct{} // closed when there is an answer

	mu      sync.Mutex
	objects map[seenName]*unstructured.Unstructured // never changed, only replaced
	err     error                                   // of the last list
}

type seenName struct{ namespace, name string }

// See returns what the cluster of a client holds, until Close or the end of ctx.
func See(ctx context.Context, client dynamic.Interface) *Seen {
	s := &Seen{client: client, changed: make(chan struct{}, 1), kinds: map[schema.GroupVersionResource]*seenKind{}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Close ends the watches. Nothing may be asked any more.
func (s *Seen) Close() {
	s.cancel()
	s.all.Wait()
}

// List returns the objects of a kind as a list of the API server would: in order,
// of one namespace or of all ("") and by a label selector. They are the caller's.
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

// Listed is List for a Go type.
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

// Got returns one object; the API server's NotFound where it is not.
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

// into reads an object into a Go type, which may have more fields than its JSON.
func into(o *unstructured.Unstructured, to any) error {
	data, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// kind returns what is known of a kind, and has it watched.
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

// tell fills changed, unless it is full already.
func (s *Seen) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// follow lists and watches, and begins anew when a watch has ended. It tells of each list, too: what happened between
// two watches is not known.
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

// list takes in all objects, and returns from where on to watch.
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

// watch takes in what changes until the watch ends.
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
