package cluster_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/cluster/tracked"
)

// reviews answers access reviews. allowed is the set of allowed verbs.
func reviews(api *fakeAPI, allowed *map[string]bool) {
	api.post = func(path string, body map[string]any) map[string]any {
		switch {
		case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
			spec := body["spec"].(map[string]any)
			attributes, ok := spec["resourceAttributes"].(map[string]any)
			if !ok {
				attributes = spec["nonResourceAttributes"].(map[string]any)
			}
			verb := attributes["verb"].(string)
			body["status"] = map[string]any{"allowed": (*allowed)[verb], "reason": "RBAC:\x1b[31m said so"}
		case strings.HasSuffix(path, "/selfsubjectrulesreviews"):
			body["status"] = map[string]any{
				"resourceRules": []any{
					map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"pods"}},
				},
				"nonResourceRules": []any{map[string]any{"verbs": []any{"get"}, "nonResourceURLs": []any{"/healthz"}}},
				"incomplete":       true,
			}
		case strings.HasSuffix(path, "/selfsubjectreviews"):
			body["status"] = map[string]any{"userInfo": map[string]any{"username": "jane", "groups": []any{"dev"}}}
		}
		return body
	}
}

func TestCanAsksEachRightOnceAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		allowed := map[string]bool{"get": true}
		reviews(api, &allowed)
		c := api.open(cluster.Options{})
		ctx := tracked.WithLooks(t.Context(), tracked.NewLooks())
		rights := []permission.Rule{
			{Verb: "get", Resource: "pods", Namespace: "a"},
			{Verb: "delete", Resource: "pods", Namespace: "a"},
			{Verb: "get", Path: "/metrics"},
		}
		can := func() (got []bool) {
			decisions, err := c.Can(ctx, rights...)
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range decisions {
				if d.Err != nil || d.Rule != rights[i] || d.Reason != "RBAC: said so" {
					t.Errorf("got %+v", d)
				}
				got = append(got, d.Allowed)
			}
			return got
		}
		want := []bool{true, false, true}
		if diff := cmp.Diff(want, can()); diff != "" {
			t.Error(diff)
		}
		allowed["get"] = false
		if diff := cmp.Diff(want, can()); diff != "" {
			t.Error(diff)
		}
		if got := api.requests(); len(got) != 3 {
			t.Errorf("asked %q", got)
		}
		time.Sleep(61 * time.Second) // the bubble's clock
		if diff := cmp.Diff([]bool{false, false, false}, can()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCanFailsOnlyIfNothingCouldBeAsked(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		reviews(api, &map[string]bool{"get": true})
		asked := 0
		api.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
			if asked++; asked > 1 {
				return false
			}
			forbidden(w)
			return true
		})
		c := api.open(cluster.Options{})
		decisions, err := c.Can(
			t.Context(), permission.Rule{Verb: "get", Resource: "a"}, permission.Rule{Verb: "get", Resource: "b"},
		)
		if err != nil || (decisions[0].Err == nil) == (decisions[1].Err == nil) {
			t.Errorf("got %+v, %v", decisions, err)
		}
		api.setFault(refuse)
		if _, err := c.Can(t.Context(), permission.Rule{Verb: "get", Resource: "a"}); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	})
}

// A proxy that cuts a watch resets the connection, which a review can share with the watch. The review is then sent
// again.
func TestAReviewIsSentAgainIfItsConnectionBreaks(t *testing.T) {
	for name, breaks := range map[string]int{"once": 1, "seven times": 7, "always": 1000} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, api *fakeAPI) {
				reviews(api, &map[string]bool{"get": true})
				sent := 0
				api.setFault(func(http.ResponseWriter, *http.Request) bool {
					if sent++; sent > breaks {
						return false
					}
					api.stop()
					api.start()
					return true
				})
				c := api.open(cluster.Options{})
				decisions, err := c.Can(t.Context(), permission.Rule{Verb: "get", Resource: "a"})
				if breaks < 8 && (err != nil || !decisions[0].Allowed) || breaks > 8 && err == nil {
					t.Errorf("got %+v, %v", decisions, err)
				}
				if sent != min(breaks+1, 8) {
					t.Errorf("%d requests", sent)
				}
			})
		})
	}
}

func TestReviewsAreNotAskedOfAClusterThatIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		reviews(api, &map[string]bool{"get": true})
		c := api.open(cluster.Options{})
		reading := configMap(t, c, "x").look()
		api.stop()
		reading.changed(5 * time.Second).stale()
		synctest.Wait()
		ctx, trace := tracked.WithTrace(tracked.WithLooks(t.Context(), tracked.NewLooks()))
		p := &probe{t: t, trace: trace}
		_, p.err = c.Can(ctx, permission.Rule{Verb: "get", Resource: "a"})
		p.stale()
		api.start()
		start := time.Now()
		if err := trace.Wait(t.Context()); err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("due after %v: %v", time.Since(start), err)
		}
		if _, err := c.Can(ctx, permission.Rule{Verb: "get", Resource: "a"}); err != nil {
			t.Error(err)
		}
	})
}

func TestWhoAmIRulesAndVersion(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		reviews(api, &map[string]bool{})
		api.setFault(func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case strings.Contains(r.URL.Path, "authentication.k8s.io/v1/"):
				http.NotFound(w, r)
			case r.URL.Path == "/version":
				w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
				answer(w, http.StatusOK, map[string]any{"major": "1", "minor": "36+", "gitVersion": "v1.36.3"})
			default:
				return false
			}
			return true
		})
		c := api.open(cluster.Options{})
		who, err := c.WhoAmI(t.Context())
		if diff := cmp.Diff(cluster.User{Name: "jane", Groups: []string{"dev"}}, who); diff != "" || err != nil {
			t.Error(diff, err)
		}
		version, err := c.Version(t.Context())
		if err != nil || version.Git != "v1.36.3" || version.Major != 1 || version.Minor != 36 || !version.SkewKnown {
			t.Errorf("got %+v, %v", version, err)
		}
		if off := version.Skew + time.Hour; off < -time.Second || off > time.Second {
			t.Errorf("skew is %v", version.Skew)
		}
		rules, paths, incomplete, err := c.Rules(t.Context(), "a")
		if err != nil || !incomplete || len(rules) != 1 || rules[0].Resources[0] != "pods" || len(paths) != 1 ||
			paths[0].NonResourceURLs[0] != "/healthz" {
			t.Errorf("got %v, %v, %v, %v", rules, paths, incomplete, err)
		}
	})
}

func TestARightReadsAsASentenceGoesOn(t *testing.T) {
	for want, right := range map[string]permission.Rule{
		"create secrets in renku-user-sessions":  {Verb: "create", Resource: "secrets", Namespace: "renku-user-sessions"},
		"list priorityclasses.scheduling.k8s.io": {Verb: "list", Group: "scheduling.k8s.io", Resource: "priorityclasses"},
		"get /metrics":                           {Verb: "get", Path: "/metrics"},
		`create serviceaccounts/token "x" in a`: {
			Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: "x", Namespace: "a",
		},
		"update deployments.apps/scale in b": {
			Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "b",
		},
		"impersonate users.authentication.k8s.io": {Verb: "impersonate", Group: "authentication.k8s.io", Resource: "users"},
	} {
		if got := right.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A decision is asked for again as soon as an RBAC object changes that the cluster watches, and the caller is woken.
func TestCanFollowsTheRBACObjectsThatAreWatched(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		allowed := map[string]bool{"get": true}
		reviews(api, &allowed)
		api.put(roles, "a", "r", nil)
		c := api.open(cluster.Options{})
		looks := tracked.WithLooks(t.Context(), tracked.NewLooks())
		if _, err := c.Get(looks, roles, "a", "r"); err != nil {
			t.Fatal(err)
		}
		can := func() (bool, *tracked.Trace) {
			ctx, trace := tracked.WithTrace(looks)
			decisions, err := c.Can(ctx, permission.Rule{Verb: "get", Resource: "pods", Namespace: "a"})
			if err != nil {
				t.Fatal(err)
			}
			return decisions[0].Allowed, trace
		}
		if is, trace := can(); !is || trace.Differs() {
			t.Errorf("allowed %t, differs %t", is, trace.Differs())
		}
		_, trace := can()
		began := time.Now()
		api.put(roles, "a", "r", map[string]any{"rules": []any{}})
		allowed["get"] = false
		if err := trace.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if is, _ := can(); is || time.Since(began) > time.Second {
			t.Errorf("allowed %t after %s", is, time.Since(began))
		}
		_, trace = can()
		allowed["get"] = true // the authorizer lags behind
		if err := trace.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if is, _ := can(); !is || time.Since(began) > 4*time.Second {
			t.Errorf("allowed %t after %s", is, time.Since(began))
		}
	})
}
