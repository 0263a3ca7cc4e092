package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"carrick/cluster/failure"
)

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }
func (zeroes) Close() error               { return nil }

func TestAnAnswerThatIsTooLargeIsNotRead(t *testing.T) {
	b := newBodies().bound(t.Context(), zeroes{})
	n, err := io.Copy(io.Discard, b)
	if !errors.Is(err, failure.ErrTooLarge) || n != failure.AnswerLimit+1 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// Large responses are read one at a time. Small responses do not wait.
func TestLargeAnswersWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newBodies()
		first := all.bound(t.Context(), zeroes{})
		if _, err := io.CopyN(io.Discard, first, 2*freeBytes); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, all.bound(t.Context(), zeroes{}), freeBytes); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		second := all.bound(t.Context(), zeroes{})
		go func() {
			_, err := io.CopyN(io.Discard, second, 2*freeBytes)
			done <- err
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("the second large answer did not wait: %v", err)
		default:
		}
		first.reset()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = second.Close()
		if len(all.large) != 0 {
			t.Error("the turn is not given back")
		}
	})
}

func TestWatchesAreNotBoundedAsAWhole(t *testing.T) {
	b := newBodies()
	b.next = answering(func(*http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("x"))}
	})
	for query, want := range map[string]bool{"": true, "?watch=true": false} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x/api"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := resp.Body.(*bounded); got != want {
			t.Errorf("%q is bounded: %v", query, got)
		}
		_ = resp.Body.Close()
	}
}

type answering func(*http.Request) *http.Response

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	for body, want := range map[string]string{
		"<html>\n log in": `the server that answers is not an API server, but a proxy, a login page or another service ("<html>\n log in")`,
		`{"data":{"password":"hunter2`: "the answer is invalid: something between the API server and this machine " +
			"changes or truncates it (the answer is truncated)",
		"": "the answer is invalid: something between the API server and this machine changes or truncates it (the " +
			"answer is truncated)",
		`{"a":1}`: "the server that answers is not an API server, but a proxy, a login page or another service (it " +
			"has no kind)",
	} {
		err := fmt.Errorf("read Secret x: %w", failure.Unreadable([]byte(body), errors.New("it has no kind")))
		if got := failure.Explain(err); got != want || !errors.Is(err, failure.ErrNotJSON) {
			t.Errorf("%q: %s", body, got)
		}
	}
}
