package standin

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// restEvery is how often a stand-in looks while nothing changes that it watches: for what lies outside of its cluster, and
// for what it writes and does not watch.
const restEvery = 2 * time.Second

// LoopOnChange is Loop for a look that depends on objects of these kinds: it is called soon after one of them has
// changed, LookEvery after the last one at the earliest, and every two seconds while none does. A sandbox that does
// nothing costs little that way. Kinds may come and go.
func LoopOnChange(ctx context.Context, config *rest.Config, look func(context.Context) error, kinds ...schema.GroupVersionResource) (end func(), err error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	var all sync.WaitGroup
	for _, kind := range kinds {
		all.Go(func() { follow(ctx, client.Resource(kind), changed) })
	}
	all.Go(func() {
		for {
			once(ctx, look)
			if !sleep(ctx, LookEvery) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			case <-time.After(restEvery - LookEvery):
			}
		}
	})
	return func() {
		cancel()
		all.Wait()
	}, nil
}

// follow tells of every change of a kind, and of every list: what happened between two watches is not known.
func follow(ctx context.Context, client metadata.ResourceInterface, changed chan<- struct{}) {
	for {
		if from, err := version(ctx, client); err == nil {
			tell(changed)
			told(ctx, client, from, changed)
		}
		if !sleep(ctx, restEvery) {
			return
		}
	}
}

// version is from where on to watch.
func version(ctx context.Context, client metadata.ResourceInterface) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	found, err := client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return found.GetResourceVersion(), nil
}

// told tells of changes until the watch ends.
func told(ctx context.Context, client metadata.ResourceInterface, from string, changed chan<- struct{}) {
	changes, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true})
	if err != nil {
		return
	}
	defer changes.Stop()
	defer context.AfterFunc(ctx, changes.Stop)()
	for change := range changes.ResultChan() {
		switch change.Type {
		case watch.Error:
			return
		case watch.Bookmark:
		default:
			tell(changed)
		}
	}
}

func tell(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // a look is due already
	}
}

// sleep returns whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
