package renkuapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

const (
	classesAt = "/apis/scheduling.k8s.io/v1/priorityclasses"
	quotasAt  = "/api/v1/namespaces/renku-user-sessions/resourcequotas"
	quotaName = "renku-pool-1"
)

func TestPoolWithAQuotaOnARemoteCluster(t *testing.T) {
	s := newSite(t)
	id := s.join()
	got := s.must(201, "POST", "/resource_pools", guidePool(id)).object(t)
	if q := got["quota"].(object); q["id"] != quotaName || q["cpu"] != 5.0 || got["cluster"].(object)["id"] != id {
		t.Errorf("%v", got)
	}
	if asked, want := s.remote.asked(), []string{
		"list priorityclasses metadata.name=" + quotaName, "create priorityclasses", "get priorityclasses",
		"create resourcequotas",
	}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	class := s.remote.get(classesAt, quotaName)
	if class["value"] != 100.0 || class["preemptionPolicy"] != "Never" || class["globalDefault"] != nil &&
		class["globalDefault"] != false ||
		class["metadata"].(object)["labels"].(object)["app"] != "renku" {
		t.Errorf("%v", class)
	}
	spec := s.remote.get(quotasAt, quotaName)["spec"].(object)
	if hard := spec["hard"]; !reflect.DeepEqual(
		hard, object{"requests.cpu": "5", "requests.memory": "250G", "requests.nvidia.com/gpu": "0"},
	) {
		t.Errorf("%v", hard)
	}
	if scope := text(spec["scopeSelector"]); scope != `{"matchExpressions":[{"operator":"In","scopeName":"PriorityClass","values":["renku-pool-1"]}]}` {
		t.Errorf("%s", scope)
	}
	if !s.remote.tokens["token-of-the-service-account"] {
		t.Error("the kubeconfig's token was not shown")
	}
	if got := s.must(200, "GET", "/resource_pools", nil).list(t)[1]["quota"].(object); got["memory"] != 250.0 {
		t.Errorf("%v", got)
	}
	s.remote.asked()
	s.must(204, "DELETE", "/resource_pools/2", nil)
	if asked, want := s.remote.asked(), []string{
		"list priorityclasses metadata.name=" + quotaName, "delete priorityclasses",
		"list resourcequotas metadata.name=" + quotaName, "delete resourcequotas",
	}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	s.must(204, "DELETE", "/resource_pools/2", nil)
	if s.remote.get(quotasAt, quotaName) != nil || s.remote.get(classesAt, quotaName) != nil {
		t.Error("the quota or the class stays")
	}
}

// TestPoolWhoseClassMayNotBeDeleted verifies the deletion of a pool whose PriorityClass cannot be deleted. If Renku is
// allowed to list it, the pool and its quota are kept. If Renku is not allowed to list it, the pool is deleted without
// the PriorityClass.
func TestPoolWhoseClassMayNotBeDeleted(t *testing.T) {
	s := newSite(t)
	id := s.join()
	s.must(201, "POST", "/resource_pools", guidePool(id))
	s.remote.deny("delete priorityclasses")
	refusals{{"its end", "DELETE", "/resource_pools/2", nil, 500, "An unexpected error occurred"}}.play(t, s)
	if s.remote.get(quotasAt, quotaName) == nil || len(s.must(200, "GET", "/resource_pools", nil).list(t)) != 2 {
		t.Error("the pool or its quota is gone")
	}
	s.remote.deny("list priorityclasses")
	s.must(204, "DELETE", "/resource_pools/2", nil)
	if s.remote.get(quotasAt, quotaName) != nil || s.remote.get(classesAt, quotaName) == nil {
		t.Error("the quota stays, or the class goes")
	}
}

func TestPoolTakesTheAdminsPriorityClass(t *testing.T) {
	s := newSite(t)
	id := s.join()
	s.remote.put(classesAt, object{"metadata": object{"name": quotaName}, "value": 100})
	s.remote.deny("create priorityclasses")
	s.must(201, "POST", "/resource_pools", guidePool(id))
	s.must(204, "DELETE", "/resource_pools/2", nil)
	if s.remote.get(classesAt, quotaName) != nil {
		t.Error("deleting the pool leaves the class that the admin made: upstream takes it")
	}
}

// In each case, Renku returns a 500 without a cause and creates no pool, as upstream does.
func TestPoolThatTheRemoteClusterRefuses(t *testing.T) {
	const unexpectedly = "An unexpected error occurred"
	for _, row := range []struct {
		name    string
		before  func(*fakeCluster)
		message string
	}{
		{
			"no right to list or create classes",
			func(f *fakeCluster) { f.deny("list priorityclasses", "create priorityclasses") }, unexpectedly,
		},
		{"a class that may not be listed", func(f *fakeCluster) {
			f.deny("list priorityclasses")
			f.put(classesAt, object{"metadata": object{"name": quotaName}})
		}, unexpectedly},
		{"a class that may be created and not read", func(f *fakeCluster) { f.deny("get priorityclasses") }, unexpectedly},
		{"no right to create the class", func(f *fakeCluster) { f.deny("create priorityclasses") }, unexpectedly},
		{"no right to create quotas", func(f *fakeCluster) { f.deny("create resourcequotas") }, unexpectedly},
		{
			"a quota that was left behind",
			func(f *fakeCluster) { f.put(quotasAt, object{"metadata": object{"name": quotaName}}) }, unexpectedly,
		},
		{"nobody answers", func(f *fakeCluster) { f.Close() }, "Error on remote connection GET https://127.0.0.1:"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite(t)
			id := s.join()
			row.before(s.remote)
			refusals{{"POST", "", "/resource_pools", guidePool(id), 500, row.message}}.play(t, s)
			if pools := s.must(200, "GET", "/resource_pools", nil).list(t); len(pools) != 1 {
				t.Errorf("there are %d pools", len(pools))
			}
		})
	}
}

func TestQuotaThatStaysBehind(t *testing.T) {
	s := newSite(t)
	id := s.join()
	long := strings.Repeat("q", 64)
	refusals{
		{
			"an id of 64", "", "/resource_pools", guidePoolNamed(id, long), 500,
			"Database error occurred: value too long for type character varying(63)",
		},
		{"again", "", "/resource_pools", guidePoolNamed(id, long), 500, "An unexpected error occurred"},
	}.play(t, s)
	if s.remote.get(quotasAt, long) == nil {
		t.Error("the quota is gone")
	}
	s.must(201, "POST", "/resource_pools", guidePoolNamed(id, long[:63]))
}

// A forbidden LIST counts as an empty list.
func TestClassesThatMayBeMadeButNotListed(t *testing.T) {
	s := newSite(t)
	id := s.join()
	s.remote.deny("list priorityclasses")
	s.must(201, "POST", "/resource_pools", guidePool(id))
	if s.remote.get(classesAt, quotaName) == nil {
		t.Error("no class was made")
	}
}

// leaver cancels a request's context once a ResourceQuota has been created and the response was read.
type leaver struct {
	http.RoundTripper
	leave func()
}

func (l leaver) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/resourcequotas") {
		data, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		answer.Body = io.NopCloser(bytes.NewReader(data))
		l.leave()
	}
	return answer, err
}

// TestClientThatGoesAway verifies that a client that disconnects after its quota was created leaves the quota behind,
// without a pool.
func TestClientThatGoesAway(t *testing.T) {
	s := newSite(t)
	id := s.join()
	ctx, leave := context.WithCancel(t.Context())
	where := *s.services.reach(id)
	where.config = rest.CopyConfig(where.config)
	where.config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return leaver{next, leave} }
	p := &pools{registry: newRegistry(nil), reach: func(string) *connection { return &where }}
	p.clusters[id] = &cluster{ID: id}
	req := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(text(guidePool(id))))
	if _, _, err := p.post(req); !errors.Is(err, context.Canceled) || len(p.pools) != 1 ||
		s.remote.get(quotasAt, quotaName) == nil {
		t.Errorf("%v, %d pools", err, len(p.pools))
	}
	refusals{{"the retry", "", "/resource_pools", guidePool(id), 500, "An unexpected error occurred"}}.play(t, s)
}

func TestQuotaWithoutAnID(t *testing.T) {
	s := newSite(t)
	id := s.join()
	body := with(guidePool(id), object{"quota": object{"cpu": 4, "memory": 250, "gpu": 2}})
	q := s.must(201, "POST", "/resource_pools", body).object(t)["quota"].(object)["id"].(string)
	if len(q) != 36 || s.remote.get(quotasAt, q) == nil {
		t.Errorf("id %q", q)
	}
}

func TestLocalPoolWithAQuota(t *testing.T) {
	s := newSite(t)
	s.must(201, "POST", "/resource_pools", with(guidePool(""), object{"cluster_id": nil}))
	if s.local.get("/api/v1/namespaces/renku/resourcequotas", quotaName) == nil || len(s.remote.asked()) != 0 {
		t.Error("a pool without a cluster is one of the local cluster")
	}
}

// TestQuotaThatCannotBeRead verifies the quota in lists and responses if the cluster does not return it.
func TestQuotaThatCannotBeRead(t *testing.T) {
	s := newSite(t)
	id := s.join()
	s.must(201, "POST", "/resource_pools", guidePool(id))
	quotaIn := func() any { return s.must(200, "GET", "/resource_pools/2", nil).object(t)["quota"] }
	if quotaIn() == nil {
		t.Error("no quota")
	}
	s.remote.deny("list resourcequotas")
	if got := quotaIn(); got != nil {
		t.Errorf("refused, and yet %v", got)
	}
	s.remote.Close()
	refusals{
		{"one", "GET", "/resource_pools/2", nil, 500, "Error on remote connection GET https://127.0.0.1:"},
		{"all", "GET", "/resource_pools", nil, 500, "Error on remote connection GET https://127.0.0.1:"},
		{"its end", "DELETE", "/resource_pools/2", nil, 500, "Error on remote connection GET https://127.0.0.1:"},
	}.play(t, s)
	s.mount(map[string]string{}) // the next process does not load the cluster
	s.restart(dataService)
	if got := quotaIn(); got != nil {
		t.Errorf("not loaded, and yet %v", got)
	}
	body := with(
		guidePool(id), object{"platform": "linux/amd64", "quota": nil, "classes": []any{with(smallClass(), object{"id": 2})}},
	)
	refusals{
		{
			"its change", "PATCH", "/resource_pools/2",
			object{"quota": object{"cpu": 9, "memory": 250, "gpu": 0}},
			500,
			"An unexpected error occurred",
		},
		{
			"half of it", "PATCH", "/resource_pools/2", object{"quota": object{"cpu": 9}}, 422, "needs the field 'quota.memory'",
		},
		{"a PUT without it", "PUT", "/resource_pools/2", body, 404, "Could not find cluster"},
	}.play(t, s)
	refusals{{"its end", "DELETE", "/resource_pools/2", nil, 404, "Could not find cluster"}}.play(t, s)
}
