package standin

import (
	"context"
	"time"
)

// LookEvery is the polling interval of a fake controller. Fakes that read few objects use List requests, and fakes that
// read many use Seen.
const LookEvery = 400 * time.Millisecond

// lookWithin is the timeout of one call of look. On a busy machine each request takes a second or more, and a call that
// times out starts again from the beginning.
const lookWithin = time.Minute

// Loop calls look repeatedly until end is called or ctx is done. end waits until the loop has stopped. Errors are
// ignored, because the next call retries. A call in progress is not cancelled, because an interrupted reconciliation
// can leave inconsistent objects.
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
