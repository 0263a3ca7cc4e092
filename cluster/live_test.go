package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/tracked"
)

// data returns the data of a ConfigMap.
func data(value string) map[string]any {
	return map[string]any{"data": map[string]any{"key": value}}
}

// probe is a minimal check: one read, its result and its trace.
type probe struct {
	t     *testing.T
	read  func(ctx context.Context) (string, error)
	count func(ctx context.Context) (int, error) // in place of read
	value string
	err   error
	trace *tracked.Trace
	took  time.Duration
}

func configMap(t *testing.T, c *cluster.Cluster, name string) *probe {
	return &probe{t: t, read: func(ctx context.Context) (string, error) {
		object, err := c.Get(ctx, configMaps, "a", name)
		if err != nil {
			return "", err
		}
		value, _ := object.Object["data"].(map[string]any)["key"].(string)
		return value, nil
	}}
}

func (p *probe) look() *probe {
	start := time.Now()
	ctx, trace := tracked.WithTrace(p.t.Context())
	if p.count != nil {
		var n int
		n, p.err = p.count(ctx)
		p.value = strconv.Itoa(n)
	} else {
		p.value, p.err = p.read(ctx)
	}
	p.trace, p.took = trace, time.Since(start)
	return p
}

// changed waits for the trace and reads again. It fails the test if nothing changes in the given time.
func (p *probe) changed(within time.Duration) *probe {
	p.t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(p.t.Context(), within)
	defer cancel()
	if err := p.trace.Wait(ctx); err != nil {
		p.t.Fatalf("nothing changed in %v (value %q, error %v)", within, p.value, p.err)
	}
	p.look()
	p.took = time.Since(start)
	return p
}

// same fails the test if something changes in the given time.
func (p *probe) same(during time.Duration) *probe {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), during)
	defer cancel()
	if err := p.trace.Wait(ctx); err == nil {
		was, wasErr := p.value, p.err
		p.look()
		p.t.Fatalf("it was woken: from %q, %v to %q, %v", was, wasErr, p.value, p.err)
	}
	return p
}

func (p *probe) is(value string) *probe {
	p.t.Helper()
	if p.err != nil || p.value != value {
		p.t.Fatalf("got %q, %v; want %q", p.value, p.err, value)
	}
	return p
}

func (p *probe) stale() *probe {
	p.t.Helper()
	var stale *failure.StaleError
	if !errors.As(p.err, &stale) {
		p.t.Fatalf("got %q, %v; want a StaleError", p.value, p.err)
	}
	return p
}

func (p *probe) fails(what string, is func(error) bool) *probe {
	p.t.Helper()
	if !is(p.err) {
		p.t.Fatalf("got %q, %v; want %s", p.value, p.err, what)
	}
	return p
}

func TestOneWatchServesAllReadsAndWakesThem(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		c := api.open(cluster.Options{})
		probes := make([]*probe, 10)
		for i := range probes {
			probes[i] = configMap(t, c, "x").look().is("1")
		}
		api.put(configMaps, "a", "x", data("2"))
		for _, p := range probes {
			p.changed(time.Second).is("2")
		}
		api.remove(configMaps, "a", "x")
		probes[0].changed(time.Second).fails("not found", apierrors.IsNotFound)
		if got := api.requests(); len(got) != 1 || got[0] != "WATCH /api/v1/namespaces/a/configmaps/x" {
			t.Errorf("asked %q", got)
		}
	})
}

func TestAnObjectThatIsNotThereYet(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		c := api.open(cluster.Options{})
		p := configMap(t, c, "x").look().fails("not found", apierrors.IsNotFound)
		api.put(configMaps, "a", "y", data("1"))
		p.same(time.Minute)
		api.put(configMaps, "a", "x", data("1"))
		p.changed(time.Second).is("1")
	})
}

func TestAChangeBetweenReadAndWaitIsNotLost(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		p := configMap(t, api.open(cluster.Options{}), "x").look()
		api.put(configMaps, "a", "x", data("2"))
		synctest.Wait()
		p.changed(time.Second).is("2")
	})
}

func TestAStormOfWritesIsNotAStormOfProbes(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("0"))
		p := configMap(t, api.open(cluster.Options{}), "x").look()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 1000 {
				api.put(configMaps, "a", "x", data("n"))
				time.Sleep(time.Millisecond) // the bubble's clock
			}
			api.put(configMaps, "a", "x", data("last"))
		}()
		probes := 0
		for p.value != "last" {
			p.changed(time.Second)
			probes++
		}
		<-done
		if probes > 50 {
			t.Errorf("%d probes for 1000 writes in a second", probes)
		}
	})
}

func TestIdleMeansNoRequests(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		c := api.open(cluster.Options{})
		p := configMap(t, c, "x").look()
		api.requests()
		p.same(time.Hour)
		if got := api.requests(); len(got) != 0 {
			t.Errorf("asked %q in an idle hour", got)
		}
		if at, polled := p.trace.Seen(); polled || time.Since(at) > 6*time.Second {
			t.Errorf("seen %v ago, polled %v", time.Since(at), polled)
		}
	})
}

func TestAReadNobodyUsesIsLetGoAndWakesOldTraces(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		c := api.open(cluster.Options{})
		p := configMap(t, c, "x").look()
		time.Sleep(2 * time.Minute) // the bubble's clock
		api.mu.Lock()
		watches := len(api.watches)
		api.mu.Unlock()
		if watches != 0 {
			t.Errorf("%d watches are left", watches)
		}
		p.changed(time.Second).is("1")
	})
}

func TestCloseEndsReadsAndWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		c := api.open(cluster.Options{})
		p := configMap(t, c, "x").look()
		api.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		})
		got := make(chan error)
		go func() {
			_, err := c.Get(t.Context(), configMaps, "a", "hangs")
			got <- err
		}()
		woken := make(chan error, 1)
		go func() { woken <- p.trace.Wait(t.Context()) }()
		synctest.Wait()
		c.Close()
		if err := <-woken; err != nil {
			t.Errorf("the waiter got %v", err)
		}
		if err := <-got; !errors.Is(err, failure.ErrClosed) {
			t.Errorf("the waiting read got %v", err)
		}
		p.look().fails("closed", func(err error) bool { return errors.Is(err, failure.ErrClosed) })
		c.Close()
	})
}

func TestTheEndOfAContextEndsTheCallAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		})
		c := api.open(cluster.Options{})
		why := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		start := time.Now()
		_, err := c.Get(ctx, configMaps, "a", "x")
		if !errors.Is(err, why) || time.Since(start) != 100*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

func TestABurstSharesOneConnection(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		c := api.open(cluster.Options{})
		done := make(chan error)
		for i := range 90 {
			go func() {
				_, err := c.Get(t.Context(), configMaps, "a", "x"+string(rune('a'+i%26))+string(rune('a'+i/26)))
				done <- err
			}()
		}
		for range 90 {
			if err := <-done; !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		if got := api.line.dialled(); got != 1 {
			t.Errorf("%d connections", got)
		}
	})
}

func BenchmarkGetWarm(b *testing.B) {
	api := newFakeAPI(b)
	api.put(configMaps, "a", "x", data("1"))
	c, err := cluster.New(api.config(), cluster.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for b.Loop() {
		ctx, _ := tracked.WithTrace(b.Context())
		if _, err := c.Get(ctx, configMaps, "a", "x"); err != nil {
			b.Fatal(err)
		}
	}
}
