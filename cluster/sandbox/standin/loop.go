package standin

import (
	"context"
	"time"
)

// LookEvery is the polling interval of fake controllers. Fakes that read few objects send list requests. Fakes that
// read many objects use Seen.
const LookEvery = 400 * time.Millisecond

// lookWithin is the timeout for one call of look. It is long, because each request can take a second on a busy machine,
// and a call that times out must start over.
const lookWithin = time.Minute

// Loop calls look repeatedly until end is called or ctx is done. end waits until the loop has stopped. Loop ignores
// errors, because the next call retries. It does not cancel a call in progress, because an interrupted reconciliation
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
