package standin

import (
	"context"
	"time"
)

// LookEvery is how often a stand-in that plays a controller looks at its
// cluster: with lists where that is little, with what is Seen where it is much.
const LookEvery = 400 * time.Millisecond

// lookWithin is how long one look may take: on a busy machine each request of it takes a second or more, and one that
// is cut short begins anew.
const lookWithin = time.Minute

// Loop calls look again and again until the returned function is called, which
// returns when it has ended, or until ctx ends. An error counts for nothing: it
// is looked at again. A look that has begun is not cut short, for half of what
// a controller does may be worse than nothing.
func Loop(ctx context.Context, look func(context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(LookEvery)
		defer tick.Stop()
		for {
			once(ctx, look)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func once(ctx context.Context, look func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
	defer cancel()
	_ = look(ctx)
}
