package standin

import (
	"context"
	"time"
)

// LookEvery is the polling interval of a fake controller. Those that read little use lists, those that read much use
// Seen.
const LookEvery = 400 * time.Millisecond

// lookWithin is the timeout of a look. On a busy machine each request takes a second or more, and a look that times out
// starts over.
const lookWithin = time.Minute

// Loop calls look repeatedly until end is called or ctx is done. end waits until the loop has ended. Errors are
// ignored, because look runs again. A running look is not interrupted, because half a reconciliation can be worse than
// none.
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
