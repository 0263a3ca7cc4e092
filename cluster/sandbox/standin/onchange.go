package standin

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// restEvery is how often a stand-in looks while nothing changes that it watches: for what lies outside of its cluster,
// and for what it writes and does not watch.
const restEvery = 2 * time.Second

// LoopOnChange is Loop for a look that depends on objects of these kinds: it is called soon after one of them has
// changed, LookEvery after the last one at the earliest, and every two seconds while none does. A sandbox that does
// nothing costs little that way. Kinds may come and go.
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

// sleep returns whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
