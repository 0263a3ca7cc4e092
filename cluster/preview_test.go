package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/tracked"
)

const discoveryType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// admits answers dry runs of ConfigMaps with the result of admit, and returns a pointer to their number.
func admits(api *fakeAPI, admit func(map[string]any) (warning string, refused bool)) *int {
	asked := new(int)
	api.fault = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/api":
			w.Header().Set("Content-Type", discoveryType)
			_, _ = io.WriteString(
				w,
				`{"items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"configmaps","responseKind":{"version":"v1","kind":"ConfigMap"},"scope":"Namespaced","verbs":["list"]}]}]}]}`,
			)
		case r.URL.Path == "/apis":
			w.Header().Set("Content-Type", discoveryType)
			_, _ = io.WriteString(w, `{"items":[]}`)
		case r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") == "All" &&
			r.URL.Query().Get("fieldValidation") == "Strict":
			*asked++
			var o map[string]any
			_ = json.NewDecoder(r.Body).Decode(&o)
			warning, refused := admit(o)
			w.Header().Set("Content-Type", "application/json")
			if warning != "" {
				w.Header().Set("Warning", "299 - \""+warning+"\"")
			}
			if refused {
				w.WriteHeader(http.StatusForbidden)
				o = map[string]any{
					"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
					"message": "no such thing here",
				}
			}
			_ = json.NewEncoder(w).Encode(o)
		default:
			return false
		}
		return true
	}
	return asked
}

func preview(t *testing.T, c *cluster.Cluster, ctx context.Context, o cluster.PreviewOptions) (cluster.Preview, error) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"},
		"data": map[string]any{"key": "asked"},
	}}
	return c.Preview(ctx, obj, o)
}

func TestAPreviewSaysWhatWouldBeKeptAndWarnedOf(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		asked := admits(api, func(o map[string]any) (string, bool) {
			o["data"] = map[string]any{"key": "changed"}
			return "it was asked for otherwise", false
		})
		c, ctx := api.open(cluster.Options{}), tracked.WithLooks(t.Context(), tracked.NewLooks())
		for range 2 {
			got, err := preview(t, c, ctx, cluster.PreviewOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if v, _, _ := unstructured.NestedString(got.Kept.Object, "data", "key"); v != "changed" || len(got.Warnings) != 1 ||
				got.Warnings[0] != "it was asked for otherwise" {
				t.Errorf("got %q, %q", v, got.Warnings)
			}
		}
		if *asked != 1 {
			t.Errorf("asked %d times", *asked)
		}
		time.Sleep(61 * time.Second) // the bubble's clock
		if _, err := preview(t, c, ctx, cluster.PreviewOptions{}); err != nil || *asked != 2 {
			t.Errorf("after its age it is asked %d times, %v", *asked, err)
		}
	})
}

func TestAPreviewIsAskedAnewWhenWhatItHangsOnChanges(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		refuses := false
		asked := admits(api, func(map[string]any) (string, bool) { return "", refuses })
		api.put(configMaps, "a", "policy", data("open"))
		c := api.open(cluster.Options{})
		base := tracked.WithLooks(t.Context(), tracked.NewLooks())
		o := cluster.PreviewOptions{Age: 10 * time.Second, On: func(ctx context.Context) error {
			_, err := c.Get(ctx, configMaps, "a", "policy")
			return err
		}}
		ctx, trace := tracked.WithTrace(base)
		if _, err := preview(t, c, ctx, o); err != nil || *asked != 1 {
			t.Fatalf("asked %d times, %v", *asked, err)
		}
		refuses = true
		api.put(configMaps, "a", "policy", data("shut"))
		synctest.Wait()
		if !trace.Differs() {
			t.Error("who used it is not told")
		}
		if _, err := preview(t, c, base, o); !apierrors.IsForbidden(err) || *asked != 2 {
			t.Errorf("asked %d times, %v", *asked, err)
		}
		time.Sleep(6 * time.Second) // the bubble's clock: an error is not kept for as long
		refuses = false
		if _, err := preview(t, c, base, o); err != nil || *asked != 3 {
			t.Errorf("asked %d times, %v", *asked, err)
		}
	})
}

// A dry run is repeated when an RBAC object changes that the cluster watches.
func TestAPreviewIsAskedAnewWhenPermissionsChange(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		refuses := false
		asked := admits(api, func(map[string]any) (string, bool) { return "", refuses })
		api.put(roles, "a", "r", nil)
		c := api.open(cluster.Options{})
		ctx := tracked.WithLooks(t.Context(), tracked.NewLooks())
		o := cluster.PreviewOptions{Age: time.Hour}
		if _, err := c.Get(ctx, roles, "a", "r"); err != nil {
			t.Fatal(err)
		}
		if _, err := preview(t, c, ctx, o); err != nil || *asked != 1 {
			t.Fatalf("asked %d times, %v", *asked, err)
		}
		refuses = true
		api.put(roles, "a", "r", map[string]any{"rules": []any{}})
		time.Sleep(time.Second) // the bubble's clock
		if _, err := preview(t, c, ctx, o); !apierrors.IsForbidden(err) || *asked != 2 {
			t.Errorf("asked %d times, %v", *asked, err)
		}
	})
}

func TestAPreviewIsAskedLessOftenWhileNothingChanges(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		asked := admits(api, func(map[string]any) (string, bool) { return "", false })
		api.put(configMaps, "a", "policy", data("open"))
		c := api.open(cluster.Options{})
		base := tracked.WithLooks(t.Context(), tracked.NewLooks())
		o := cluster.PreviewOptions{Age: 3 * time.Second, Steady: 10 * time.Second, On: func(ctx context.Context) error {
			_, err := c.Get(ctx, configMaps, "a", "policy")
			return err
		}}
		next := func() time.Duration {
			t.Helper()
			before, start := *asked, time.Now()
			ctx, trace := tracked.WithTrace(base)
			if _, err := preview(t, c, ctx, o); err != nil || *asked != before+1 {
				t.Fatalf("asked %d times, not %d: %v", *asked, before+1, err)
			}
			if err := trace.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		for _, want := range []time.Duration{3, 6, 10, 10} {
			if took := next(); took != want*time.Second {
				t.Errorf("asked anew after %v, not %d s", took, want)
			}
		}
		api.put(configMaps, "a", "policy", data("shut"))
		synctest.Wait()
		if took := next(); took != 3*time.Second {
			t.Errorf("asked anew %v after a change", took)
		}
		time.Sleep(time.Hour) // the bubble's clock: no one asked
		if took := next(); took != 3*time.Second {
			t.Errorf("asked anew after %v, when nobody had been here for an hour", took)
		}
	})
}

func TestAPreviewWithoutItsPremiseIsNotAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		asked := admits(api, func(map[string]any) (string, bool) { return "", false })
		c := api.open(cluster.Options{})
		ctx := tracked.WithLooks(t.Context(), tracked.NewLooks())
		away := errors.New("away")
		for range 2 { // the second is what was kept of the first
			_, err := preview(t, c, ctx, cluster.PreviewOptions{On: func(context.Context) error { return away }})
			if !errors.As(err, new(*cluster.PremiseError)) || !errors.Is(err, away) || *asked != 0 {
				t.Errorf("asked %d times, %v", *asked, err)
			}
		}
	})
}
