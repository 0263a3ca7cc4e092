package cluster_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
)

func TestOnceReadsEachThingOnceAndOpensNoWatch(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.put(configMaps, "a", "y", data("1"))
		c := api.open(cluster.Options{Once: true})
		done := make(chan error)
		for range 10 {
			go func() {
				_, err := c.Get(t.Context(), configMaps, "a", "x")
				done <- err
			}()
			go func() {
				list, err := c.List(t.Context(), configMaps, "a", cluster.Selector{})
				if len(list) != 2 {
					t.Errorf("listed %d", len(list))
				}
				done <- err
			}()
		}
		for range 20 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		configMap(t, c, "none").look().fails("not found", apierrors.IsNotFound)
		configMap(t, c, "none").look().fails("not found", apierrors.IsNotFound)
		got := api.requests()
		slices.Sort(got)
		want := []string{
			"GET /api/v1/namespaces/a/configmaps/none", "GET /api/v1/namespaces/a/configmaps/x",
			"LIST /api/v1/namespaces/a/configmaps",
		}
		if !slices.Equal(got, want) {
			t.Errorf("asked %q, want %q", got, want)
		}
	})
}

func TestOnceTriesAgainWithinPatience(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
			status(w, http.StatusServiceUnavailable, "ServiceUnavailable", "starting", nil)
			return true
		})
		time.AfterFunc(time.Second, func() { api.setFault(nil) })
		configMap(t, api.open(cluster.Options{Once: true}), "x").look().is("1")
	})
}

// An API server that answers within the request timeout is slow, not gone.
func TestOnceWaitsForASlowServer(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		api.setFault(func(http.ResponseWriter, *http.Request) bool {
			time.Sleep(9 * time.Second) // the bubble's clock
			return false
		})
		configMap(t, api.open(cluster.Options{Once: true}), "x").look().is("1")
		api.setFault(hang)
		if p := configMap(t, api.open(cluster.Options{Once: true}), "x").look().stale(); p.took != 10*time.Second {
			t.Errorf("it took %v", p.took)
		}
	})
}

func TestOnceSaysAtOnceThatNothingIsThere(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.stop()
		c := api.open(cluster.Options{Once: true})
		for _, name := range []string{"x", "y"} {
			if p := configMap(t, c, name).look().stale(); p.took != 0 || !strings.Contains(failure.Explain(p.err), "refused") {
				t.Errorf("after %v: %v", p.took, p.err)
			}
		}
	})
}

func TestOnceBelievesARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.setFault(refuse)
		c := api.open(cluster.Options{Once: true})
		configMap(t, c, "x").look().fails("forbidden", apierrors.IsForbidden)
		if _, err := c.List(t.Context(), configMaps, "a", cluster.Selector{}); !apierrors.IsForbidden(err) {
			t.Errorf("a refused list gave %v", err)
		}
	})
}

func TestOnceFetchesASecretAgainForAnotherKey(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		putSecret(api)
		c := api.open(cluster.Options{Once: true})
		for _, key := range []string{"token", "token", "ca.crt", "none", "ca.crt"} {
			s, err := c.Secret(t.Context(), "a", "s", key)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Data[key].Reveal(); got != secretValues[key] {
				t.Errorf("%s is %q", key, got)
			}
		}
		if got := api.requests(); len(got) != 2 {
			t.Errorf("asked %q", got)
		}
	})
}

// A longer --request-timeout also extends the other timeouts for slow servers.
func TestALongerTimeoutIsMorePatience(t *testing.T) {
	for timeout, waits := range map[time.Duration]bool{time.Second: false, 10 * time.Second: false, time.Minute: true} {
		t.Run(timeout.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, api *fakeAPI) {
				api.put(configMaps, "a", "x", data("1"))
				api.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
					status(w, http.StatusServiceUnavailable, "ServiceUnavailable", "starting", nil)
					return true
				})
				time.AfterFunc(30*time.Second, func() { api.setFault(nil) })
				c, err := cluster.NewAccess(api.config(), kubeconfig.Access{Timeout: timeout}, cluster.Options{Once: true})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				if _, err := c.Get(t.Context(), configMaps, "a", "x"); (err == nil) != waits {
					t.Errorf("after a wait of half a minute: %v", err)
				}
			})
		})
	}
}

// Reads that are started ahead run concurrently. Starting a read ahead does not cause a second request.
func TestReadsThatAreStartedAheadTakeOneRoundTrip(t *testing.T) {
	for name, o := range map[string]cluster.Options{"once": {Once: true}, "live": {}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, api *fakeAPI) {
				api.put(configMaps, "a", "x", data("1"))
				api.setFault(func(http.ResponseWriter, *http.Request) bool {
					time.Sleep(time.Second)
					return false
				})
				c := api.open(o)
				start := time.Now()
				c.StartGet(configMaps, "a", "x")
				c.StartList("a", configMaps)
				c.StartSelected(configMaps, "b", cluster.Selector{Labels: "l=1"})
				configMap(t, c, "x").look().is("1")
				for _, namespace := range []string{"a", "b"} {
					labels := map[string]string{"b": "l=1"}[namespace]
					if _, err := c.List(t.Context(), configMaps, namespace, cluster.Selector{Labels: labels}); err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(start); took > 1500*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if asked := api.requests(); len(asked) != 3 {
					t.Errorf("asked %q", asked)
				}
			})
		})
	}
}

// Starting a read does nothing for a nil Cluster, as for a side that is a host, and for an invalid object name.
func TestNothingIsStartedForWhatCannotBeRead(t *testing.T) {
	(*cluster.Cluster)(nil).StartList("a", configMaps)
	bubble(t, func(t *testing.T, api *fakeAPI) {
		c := api.open(cluster.Options{Once: true})
		c.StartGet(configMaps, "a", "")
		c.StartGet(configMaps, "../a", "x")
		if asked := api.requests(); len(asked) != 0 {
			t.Errorf("asked %q", asked)
		}
	})
}
