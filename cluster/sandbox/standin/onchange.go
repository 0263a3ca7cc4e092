package standin

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// restEvery is the polling interval without changes. Polling is still necessary for state outside the cluster and for
// objects that a fake writes but does not watch.
const restEvery = 2 * time.Second

// LoopOnChange is like Loop, but saves requests while the sandbox is idle. It calls look soon after an object of the
// given kinds changes, but at most once per LookEvery. Without changes, it calls look every two seconds. The API server
// need not serve the kinds yet.
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

// sleep sleeps for d. It returns false if ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
