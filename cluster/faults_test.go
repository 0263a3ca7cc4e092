package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
)

type faultFunc = func(w http.ResponseWriter, r *http.Request) bool

func watching(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// onWatches applies a fault only to watches.
func onWatches(fault faultFunc) faultFunc {
	return func(w http.ResponseWriter, r *http.Request) bool { return watching(r) && fault(w, r) }
}

func hang(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

func refuse(w http.ResponseWriter, _ *http.Request) bool {
	forbidden(w)
	return true
}

func TestAForbiddenWatchIsPolledUntilItIsGranted(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.setFault(onWatches(refuse))
		p := configMap(t, api.open(cluster.Options{}), "x").look().is("1")
		if _, polled := p.trace.Seen(); !polled {
			t.Error("it does not say that it is polled")
		}
		api.put(configMaps, "a", "x", data("2"))
		p.changed(5 * time.Second).is("2")
		api.setFault(nil)
		p.changed(time.Minute).is("2")
		if _, polled := p.trace.Seen(); polled {
			t.Error("it is still polled after the grant")
		}
		api.requests()
		p.same(time.Hour)
		if got := api.requests(); len(got) != 0 {
			t.Errorf("asked %q after the grant", got)
		}
	})
}

func TestARefusedReadIsRefusedAtOnceAndNoticesAGrant(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.setFault(refuse)
		p := configMap(t, api.open(cluster.Options{}), "x").look().fails("forbidden", apierrors.IsForbidden)
		if p.took > 0 {
			t.Errorf("it took %v", p.took)
		}
		p.same(10 * time.Minute)
		if got := len(api.requests()); got > 40 {
			t.Errorf("%d requests in 10 minutes", got)
		}
		api.setFault(nil)
		p.changed(time.Minute).is("1")
	})
}

func TestAServerThatCannotStreamListsIsListedFirst(t *testing.T) {
	for _, code := range []int{http.StatusUnprocessableEntity, http.StatusBadRequest} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, api *fakeAPI) {
				api.put(configMaps, "a", "x", data("1"))
				api.setFault(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Query().Get("sendInitialEvents") == "" {
						return false
					}
					status(
						w, code, "Invalid",
						"sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature "+
							"gate is enabled",
						nil,
					)
					return true
				})
				c := api.open(cluster.Options{})
				p := configMap(t, c, "x").look().is("1")
				api.requests()
				api.put(configMaps, "a", "x", data("2"))
				p.changed(time.Second).is("2")
				configMap(t, c, "y").look().fails("not found", apierrors.IsNotFound)
				if got := api.requests(); len(got) != 2 || !strings.HasPrefix(got[0], "LIST") ||
					!strings.HasPrefix(got[1], "WATCH") {
					t.Errorf("the second read asked %q", got)
				}
			})
		})
	}
}

func TestAWatchThatEndsIsOpenedAgainUnseen(t *testing.T) {
	expired := `{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old"}}` + "\n"
	for name, end := range map[string]func(api *fakeAPI){
		"in good order": (*fakeAPI).cut,
		"expired":       func(api *fakeAPI) { api.sendRaw(configMaps, "a", expired) },
		"cut":           func(api *fakeAPI) { api.stop(); api.start() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, api *fakeAPI) {
				api.put(configMaps, "a", "x", data("1"))
				p := configMap(t, api.open(cluster.Options{}), "x").look()
				p.same(time.Minute)
				end(api)
				p.same(time.Minute)
				if got := len(api.requests()); got != 2 {
					t.Errorf("%d requests", got)
				}
				api.stop()
				api.put(configMaps, "a", "x", data("2"))
				api.start()
				p.changed(time.Second).is("2")
			})
		})
	}
}

func TestAWatchThatIsHeldBackIsPolled(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.setFault(onWatches(hang))
		p := configMap(t, api.open(cluster.Options{}), "x").look().stale()
		p.changed(3 * time.Second).is("1")
		if _, polled := p.trace.Seen(); !polled {
			t.Error("it does not say that it is polled")
		}
		api.put(configMaps, "a", "x", data("2"))
		p.changed(6 * time.Second).is("2")
		api.setFault(nil)
		p.changed(time.Minute)
		if _, polled := p.trace.Seen(); polled {
			t.Error("it is still polled although the watch comes through")
		}
	})
}

func TestAWatchThatNeverBeginsForItIsTooOldIsPolled(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.setFault(onWatches(func(w http.ResponseWriter, _ *http.Request) bool {
			status(w, http.StatusGone, "Expired", "too old", nil)
			return true
		}))
		p := configMap(t, api.open(cluster.Options{}), "x").look().is("1")
		if p.took > time.Second {
			t.Errorf("it took %v", p.took)
		}
		api.put(configMaps, "a", "x", data("2"))
		p.changed(6 * time.Second).is("2")
	})
}

func TestAServerFaultIsSaidAfterPatienceAndRecovers(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
			status(w, http.StatusInternalServerError, "InternalError", "etcd is away", nil)
			return true
		})
		p := configMap(t, api.open(cluster.Options{}), "x").look().stale()
		if p.took != 3*time.Second || !strings.Contains(failure.Explain(p.err), "etcd is away") {
			t.Errorf("after %v: %v", p.took, failure.Explain(p.err))
		}
		time.Sleep(time.Minute) // the bubble's clock
		if got := len(api.requests()); got > 40 {
			t.Errorf("%d requests in a minute of faults", got)
		}
		api.setFault(nil)
		p.changed(6 * time.Second).is("1")
	})
}

func TestAFaultShorterThanPatienceIsNotSeen(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		p := configMap(t, api.open(cluster.Options{}), "x").look()
		api.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
			status(w, http.StatusServiceUnavailable, "ServiceUnavailable", "starting", nil)
			return true
		})
		api.cut()
		time.AfterFunc(2*time.Second, func() { api.setFault(nil) })
		p.same(time.Minute)
	})
}

func TestAHangingServerIsStaleAfterPatience(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.setFault(hang)
		p := configMap(t, api.open(cluster.Options{}), "x").look().stale()
		if p.took != 3*time.Second {
			t.Errorf("it took %v", p.took)
		}
		api.setFault(nil)
		p.changed(20 * time.Second).is("1")
	})
}

func TestALoginPageIsNotAnAPIServer(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>\x1b[31mplease log in</html>"))
			return true
		})
		p := configMap(t, api.open(cluster.Options{}), "x").look().stale()
		got := failure.Explain(p.err)
		if !strings.Contains(got, "not an API server") || strings.ContainsRune(got, 0x1b) {
			t.Errorf("explained as %q", got)
		}
	})
}

func TestAServerThatIsAwayTurnsAllReadsStaleTogetherAndAllRecover(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		c := api.open(cluster.Options{})
		var probes []*probe
		for i := range 40 {
			name := fmt.Sprintf("x%d", i)
			api.put(configMaps, "a", name, data("1"))
			probes = append(probes, configMap(t, c, name).look().is("1"))
		}
		api.stop()
		lost := time.Now()
		for _, p := range probes {
			p.changed(4 * time.Second).stale()
		}
		if took := time.Since(lost); took > 3100*time.Millisecond {
			t.Errorf("stale after %v", took)
		}
		configMap(t, c, "new").look().stale()
		time.Sleep(10 * time.Second) // the bubble's clock
		before := api.line.dialled()
		time.Sleep(10 * time.Second)
		if dials := api.line.dialled() - before; dials > 25 {
			t.Errorf("%d attempts to connect in 10 s", dials)
		}
		api.start()
		back := time.Now()
		for _, p := range probes {
			p.changed(5 * time.Second).is("1")
		}
		if took := time.Since(back); took > 1500*time.Millisecond {
			t.Errorf("all are back after %v", took)
		}
	})
}

func TestAShortRestartIsNotSeen(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		p := configMap(t, api.open(cluster.Options{}), "x").look()
		api.stop()
		time.AfterFunc(2*time.Second, api.start)
		p.same(time.Minute)
	})
}

func TestARestartingServerThatRefusesForAMomentIsNotBelieved(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		p := configMap(t, api.open(cluster.Options{}), "x").look()
		api.setFault(refuse)
		api.stop()
		api.start()
		time.AfterFunc(2*time.Second, func() { api.setFault(nil) })
		p.same(time.Minute)
		api.setFault(refuse)
		api.cut()
		p.changed(4*time.Second).fails("forbidden", apierrors.IsForbidden)
	})
}

func TestABlackHoleIsNoticedByPings(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		c := api.open(cluster.Options{})
		p := configMap(t, c, "x").look()
		p.same(time.Minute)
		api.line.setBlack(true)
		lost := time.Now()
		p.changed(12 * time.Second).stale()
		if age := time.Since(lost); age > 10*time.Second {
			t.Errorf("noticed after %v", age)
		}
		if at, _ := p.trace.Seen(); at.After(lost) {
			t.Errorf("it claims to have heard something %v after the loss", at.Sub(lost))
		}
		time.Sleep(20 * time.Second) // the bubble's clock
		api.stop()
		api.line.setBlack(false)
		api.start()
		p.changed(8 * time.Second).is("1")
	})
}

func TestAClusterThatWasNeverThereIsSaidAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.stop()
		c := api.open(cluster.Options{})
		p := configMap(t, c, "x").look().stale()
		if p.took > 0 {
			t.Errorf("it took %v", p.took)
		}
		p.same(time.Minute)
		api.start()
		p.changed(6 * time.Second).is("1")
	})
}

func TestOneAPIThatFailsLeavesTheOthersAlone(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.setFault(func(w http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, "widgets") && hang(w, r)
		})
		c := api.open(cluster.Options{})
		p := configMap(t, c, "x").look().is("1")
		if _, err := c.List(t.Context(), widgets, "a", cluster.Selector{}); !errors.As(err, new(*failure.StaleError)) {
			t.Errorf("the hanging API gave %v", err)
		}
		p.same(time.Minute)
		if q := configMap(t, c, "y").look(); q.took > 0 {
			t.Errorf("another read took %v: %v", q.took, q.err)
		}
	})
}

func TestAKindThatIsNotServedYetIsReadOnceItIs(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.unserved[collectionOf(widgets, "a")] = true
		c := api.open(cluster.Options{})
		p := (&probe{t: t, count: func(ctx context.Context) (int, error) {
			list, err := c.List(ctx, widgets, "a", cluster.Selector{})
			return len(list), err
		}}).look()
		p.fails("not served", func(err error) bool { return errors.Is(err, failure.ErrNotServed) })
		if _, polled := p.trace.Seen(); polled {
			t.Error("it says that it is polled, though its definition is watched")
		}
		if got := api.requests(); len(got) != 2 {
			t.Errorf("asked %q", got)
		}
		p.same(time.Hour)
		if got := api.requests(); len(got) != 0 {
			t.Errorf("asked %q in an idle hour", got)
		}
		api.put(crds, "", "widgets.shop.example.com", map[string]any{
			"spec":   map[string]any{"versions": []any{map[string]any{"name": "v1", "served": true}}},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}},
		})
		time.AfterFunc(60*time.Millisecond, func() {
			api.put(widgets, "a", "w", nil)
			api.mu.Lock()
			defer api.mu.Unlock()
			delete(api.unserved, collectionOf(widgets, "a"))
		})
		p.changed(time.Second).is("1")
		if p.took > 200*time.Millisecond {
			t.Errorf("it took %v", p.took)
		}
	})
}

func TestWithoutHTTP2EveryReadHasAConnection(t *testing.T) {
	t.Setenv("DISABLE_HTTP2", "1")
	bubble(t, func(t *testing.T, api *fakeAPI) {
		c := api.open(cluster.Options{})
		var probes []*probe
		for i := range 40 {
			name := fmt.Sprintf("x%d", i)
			api.put(configMaps, "a", name, data("1"))
			probes = append(probes, configMap(t, c, name).look().is("1"))
		}
		if got := api.line.dialled(); got != 40 {
			t.Errorf("%d connections", got)
		}
		api.stop()
		for _, p := range probes {
			p.changed(5 * time.Second).stale()
		}
		api.start()
		for _, p := range probes {
			p.changed(5 * time.Second).is("1")
		}
	})
}

func TestWarningsAreWrittenOnceAndClean(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Add("Warning", `299 - "this is \u001b[31mold"`)
			w.Header().Add("Warning", "299 - \"v1beta1 is old\"")
			return false
		})
		var out lines
		c, err := cluster.NewAccess(api.config(), kubeconfig.Access{Stderr: &out}, cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		configMap(t, c, "x").look().is("1")
		configMap(t, c, "y").look()
		if got := out.String(); strings.Count(got, "Warning: v1beta1 is old\n") != 1 || strings.ContainsRune(got, 0x1b) {
			t.Errorf("wrote %q", got)
		}
	})
}
