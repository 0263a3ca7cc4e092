package cluster

import (
	"context"
	"io"
	"net/http"

	"carrick/cluster/failure"
)

// freeBytes is the size above which a response counts as large. Large responses are read one at a time. Otherwise a
// server that sends huge responses to many concurrent reads could exhaust the memory.
const freeBytes = 1 << 20

// bodies is an http.RoundTripper that limits the size of responses.
type bodies struct {
	next  http.RoundTripper
	large chan struct{} // semaphore for reading one large response at a time
}

func newBodies() *bodies { return &bodies{large: make(chan struct{}, 1)} }

// RoundTrip limits the size of each response. For a watch, the size of each event is limited instead.
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

// bounded limits a response body, or one watch event, to failure.AnswerLimit bytes.
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

// Close closes the body and allows another large response to be read.
func (b *bounded) Close() error {
	b.yield()
	return b.ReadCloser.Close()
}

// reset resets the size limit for the next watch event.
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
