package standin

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// restEvery is the polling interval while no watched object changes. Polling detects changes of state outside the
// cluster and of objects that a fake writes but does not watch.
const restEvery = 2 * time.Second

// LoopOnChange is like Loop, for a look function that depends on objects of these kinds. It calls look soon after such
// an object has changed, but at most once per LookEvery, and every two seconds while none changes. This keeps an idle
// sandbox cheap. The kinds need not exist in the API server: they can be added and removed at any time.
func LoopOnChange(
	ctx context.Context, config *rest.Config, look func(context.Context) error, kinds ...schema.GroupVersionResource,
) (end func(), err error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return loopOnChange(ctx, See(ctx, client), look, kinds...), nil
}

func loopOnChange(
	ctx context.Context, seen *Seen, look func(context.Context) error, kinds ...schema.GroupVersionResource,
) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	for _, kind := range kinds {
		seen.kind(kind)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			once(ctx, look)
			if !sleep(ctx, LookEvery) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-seen.changed:
			case <-time.After(restEvery - LookEvery):
			}
		}
	}()
	return func() {
		cancel()
		<-done
		seen.Close()
	}
}

// sleep reports whether it slept for the whole duration. It returns early when ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
