package cluster

import (
	"context"
	"io"
	"net/http"

	"carrick/cluster/failure"
)

// freeBytes is the size above which a response counts as large. Large responses are read one at a time, so that a
// server that sends too much to every read cannot exhaust the memory.
const freeBytes = 1 << 20

// bodies limits the size of the responses of one cluster.
type bodies struct {
	next  http.RoundTripper
	large chan struct{} // a semaphore of one, held while a large response is read
}

func newBodies() *bodies { return &bodies{large: make(chan struct{}, 1)} }

// RoundTrip limits every response except watches, which are limited per event.
func (b *bodies) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil || resp.Body == nil {
		return resp, err
	}
	if resp.StatusCode != http.StatusOK || req.URL.Query().Get("watch") != "true" {
		resp.Body = b.bound(req.Context(), resp.Body)
	}
	return resp, nil
}

func (b *bodies) bound(ctx context.Context, body io.ReadCloser) *bounded {
	return &bounded{ReadCloser: body, ctx: ctx, large: b.large}
}

// bounded is a response body, or one watch event, limited to failure.AnswerLimit.
type bounded struct {
	io.ReadCloser
	ctx   context.Context
	large chan struct{}
	read  int64
	holds bool
}

// Read reads from the body. If the response is large, Read first waits until no other large response is being read.
func (b *bounded) Read(p []byte) (int, error) {
	if b.read > failure.AnswerLimit {
		b.yield()
		return 0, failure.ErrTooLarge
	}
	if b.read > freeBytes && !b.holds {
		select {
		case b.large <- struct{}{}:
			b.holds = true
		case <-b.ctx.Done():
			return 0, context.Cause(b.ctx)
		}
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), failure.AnswerLimit+1-b.read)])
	b.read += int64(n)
	if err != nil {
		b.yield()
	}
	return n, err
}

// Close closes the body, so that another large response can be read.
func (b *bounded) Close() error {
	b.yield()
	return b.ReadCloser.Close()
}

// reset resets the limit for the next event.
func (b *bounded) reset() {
	b.yield()
	b.read = 0
}

func (b *bounded) yield() {
	if b.holds {
		b.holds = false
		<-b.large
	}
}
