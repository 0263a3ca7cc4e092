package renkuapi

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

func b64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// guidePool returns the published guide's payload for a pool.
func guidePool(cluster string) object { return guidePoolNamed(cluster, "renku-pool-1") }

func guidePoolNamed(cluster, quotaID string) object {
	return object{
		"name": "Bern pool", "public": false, "default": false, "cluster_id": cluster,
		"quota": object{"cpu": 4.5, "memory": 250, "gpu": 0, "id": quotaID},
		"classes": []any{
			smallClass(), with(smallClass(), object{"name": "remote-medium", "cpu": 0.5, "memory": 2, "default": false}),
		},
	}
}

func smallClass() object {
	return object{
		"name": "remote-default", "cpu": 0.1, "memory": 1, "gpu": 0, "max_storage": 4, "default_storage": 1, "default": true,
	}
}

// localPool returns a pool without a quota on the local cluster.
func localPool() object { return with(guidePool(""), object{"quota": nil, "cluster_id": nil}) }

func TestPoolRefusals(t *testing.T) {
	s := newSite(t)
	but := func(key string, value any) object { return with(localPool(), object{key: value}) }
	class := func(key string, value any) object {
		return but("classes", []any{with(smallClass(), object{key: value})})
	}
	quota := func(changes object) object {
		return but("quota", with(object{"cpu": 4, "memory": 250, "gpu": 1, "id": "quota"}, changes))
	}
	affinity := func(a object) object { return class("node_affinities", []any{a}) }
	long := strings.Repeat("a", 64)
	table := refusals{
		{"no object", "", "/resource_pools", "[]", 422, "wrong type"},
		{"an unknown key", "", "/resource_pools", but("cluster", "x"), 422, "cluster: Extra inputs are not permitted"},
		{"a short name", "", "/resource_pools", but("name", "four"), 422, "name: String should have at least 5"},
		{"a name of 41", "", "/resource_pools", but("name", long[:41]), 422, "name: String should have at most 40"},
		{
			"a cluster that is no ULID", "", "/resource_pools", but("cluster_id", "Bern"), 422,
			"cluster_id: String should match",
		},
		{
			"a cluster that is not there", "", "/resource_pools", but("cluster_id", "01J00000000000000000000000"), 404,
			"Cluster definition id='01J00000000000000000000000' does not exist.",
		},
		{
			"a platform", "", "/resource_pools", but("platform", "linux/riscv64"), 422,
			"platform: Input should be 'linux/amd64' or 'linux/arm64'",
		},
		{"an idle threshold below 0", "", "/resource_pools", but("idle_threshold", -1), 422, "idle_threshold: Input"},
		{
			"a hibernation threshold too high", "", "/resource_pools", but("hibernation_threshold", 2147483648), 422,
			"hibernation_threshold: Input",
		},
		{
			"a warning after hibernation", "", "/resource_pools",
			with(but("hibernation_threshold", 60), object{"hibernation_warning_period": 60}), 422, "hibernation warning period",
		},
		{"a CPU limit factor below 1", "", "/resource_pools", but("cpu_limit_factor", 0.5), 422, "cpu_limit_factor: Input"},
		{"a CPU limit factor over 100", "", "/resource_pools", but("cpu_limit_factor", 101), 422, "cpu_limit_factor: Input"},
		{"a default that is not public", "", "/resource_pools", but("default", true), 422, "has to be public"},
		{
			"a default with a quota", "", "/resource_pools", with(quota(nil), object{"default": true, "public": true}), 422,
			"cannot have a quota",
		},
		{
			"a public remote pool", "", "/resource_pools",
			with(but("public", true), object{"remote": object{"kind": "firecrest"}}), 422, "remote resource pool",
		},
		{"no classes", "", "/resource_pools", but("classes", []any{}), 422, "One default class is required"},
		{"no default class", "", "/resource_pools", class("default", false), 422, "One default class is required"},
		{"two default classes", "", "/resource_pools", but("classes", []any{smallClass(), smallClass()}), 422, "there are 2"},
		{
			"a class that is a name", "", "/resource_pools", but("classes", []any{"small"}), 422,
			"classes.0: Input should be a valid dictionary",
		},
		{"a class with an unknown key", "", "/resource_pools", class("disk", 1), 422, "classes.0.disk: Extra"},
		{"a class with an id", "", "/resource_pools", class("id", 1), 422, "classes.0.id: Extra"},
		{"a class's short name", "", "/resource_pools", class("name", "tiny"), 422, "classes.0.name: String"},
		{"a class's name of 41", "", "/resource_pools", class("name", long[:41]), 422, "classes.0.name: String"},
		{"a class without CPU", "", "/resource_pools", class("cpu", 0), 422, "classes.0.cpu: Input should be greater than 0"},
		{
			"a class without memory", "", "/resource_pools", class("memory", 0), 422,
			"classes.0.memory: Input should be greater than 0",
		},
		{
			"a class with half a GiB", "", "/resource_pools", class("memory", 0.5), 422,
			"classes.0.memory: Input should be a valid integer",
		},
		{"a class with GPU -1", "", "/resource_pools", class("gpu", -1), 422, "classes.0.gpu: Input"},
		{
			"a class without storage", "", "/resource_pools", class("default_storage", 0), 422,
			"classes.0.default_storage: Input",
		},
		{
			"more storage than there may be", "", "/resource_pools", class("default_storage", 5), 422,
			"default storage cannot be larger",
		},
		{
			"a short toleration", "", "/resource_pools", class("tolerations", []any{"ab"}), 422,
			"classes.0.tolerations.0: String should have at least 3",
		},
		{
			"a toleration that is no key", "", "/resource_pools", class("tolerations", []any{"ends/"}), 422,
			"classes.0.tolerations.0: String should match",
		},
		{
			"a toleration of 64", "", "/resource_pools", class("tolerations", []any{long}), 422,
			"classes.0.tolerations.0: String should have at most 63",
		},
		{
			"an affinity without a key", "", "/resource_pools", affinity(object{}), 422,
			"classes.0.node_affinities.0.key: Field required",
		},
		{
			"a quota without CPU", "", "/resource_pools", quota(object{"cpu": 0}), 422,
			"quota.cpu: Input should be greater than 0",
		},
		{"a quota without memory", "", "/resource_pools", quota(object{"memory": nil}), 422, "quota.memory: Field required"},
		{
			"a quota's short id", "", "/resource_pools", quota(object{"id": "four"}), 422,
			"quota.id: String should have at least 5",
		},
		{
			"a class over the quota's CPU", "", "/resource_pools", quota(object{"cpu": 0.05}), 422,
			"The resource class with name remote-default is not compatible with the quota.",
		},
		{
			"a class over the quota's memory", "", "/resource_pools", quota(object{"memory": 1}), 422,
			"The resource class with name remote-medium is not compatible with the quota.",
		},
		{"a pool that is not there", "GET", "/resource_pools/77", nil, 404, "The resource pool with id 77 cannot be found."},
		{
			"PATCH of what is not there", "PATCH", "/resource_pools/77",
			object{},
			404,
			"Resource pool with id 77 cannot be found",
		},
		{"a pool's name as id", "GET", "/resource_pools/paris", nil, 404, "not found"},
		{"a query that is no number", "GET", "/resource_pools?memory=much", nil, 422, "memory: Input"},
		{"a CPU that is no number", "GET", "/resource_pools?cpu=much", nil, 422, "cpu: Input"},
	}
	for _, key := range []string{"name", "public", "default", "classes"} {
		row := table[0]
		row.name, row.body, row.message = "without "+key, but(key, nil), key+": Field required"
		table = append(table, row)
	}
	for _, key := range []string{"name", "cpu", "memory", "gpu", "max_storage", "default_storage", "default"} {
		row := table[0]
		row.name, row.body, row.message = "a class without "+key, class(key, nil), "classes.0."+key+": Field required"
		table = append(table, row)
	}
	table.play(t, s)
	if pools := s.must(200, "GET", "/resource_pools", nil).list(t); len(pools) != 1 {
		t.Errorf("there are %d pools after nothing but refusals", len(pools))
	}
	if got := s.local.get("/apis/scheduling.k8s.io/v1/priorityclasses", "quota"); got != nil {
		t.Errorf("a refusal made %v", got)
	}
}

func TestPoolWithoutAQuota(t *testing.T) {
	s := newSite(t)
	id := s.must(201, "POST", "/clusters", guideCluster()).object(t)["id"].(string)
	// The cluster is not loaded, and nothing is asked of it.
	body := with(guidePool(id), object{"quota": nil, "cpu_limit_factor": 2})
	got := s.must(201, "POST", "/resource_pools", body).object(t)
	if got["cluster"].(object)["id"] != id || got["quota"] != nil || got["platform"] != "linux/amd64" ||
		got["cpu_limit_factor"] != nil {
		t.Errorf("%v", got)
	}
	s.must(201, "POST", "/resource_pools", body) // a name may be there twice
	if asked := s.remote.asked(); len(asked) != 0 {
		t.Errorf("the remote was asked %q", asked)
	}
	pools := s.must(200, "GET", "/resource_pools?cpu=0.2&memory=2", nil).list(t)
	if len(pools) != 3 {
		t.Fatalf("%d pools", len(pools))
	}
	for _, p := range pools {
		if p["cluster"] != nil || p["cluster_id"] != nil {
			t.Errorf("a list shows the cluster: %v", p)
		}
	}
	classes := pools[1]["classes"].([]any)
	if classes[0].(object)["matching"] != false || classes[1].(object)["matching"] != true {
		t.Errorf("%v", classes)
	}
	if got := s.must(
		200, "PATCH", "/resource_pools/2", object{"cpu_limit_factor": 2},
	).object(t); got["cpu_limit_factor"] != 2.0 {
		t.Errorf("%v", got)
	}
	// Its cluster goes: it is then a pool of the local cluster.
	s.must(204, "DELETE", "/clusters/"+id, nil)
	if got := s.must(200, "GET", "/resource_pools/2", nil).object(t); got["cluster"] != nil {
		t.Errorf("%v", got)
	}
}

func TestPoolChanges(t *testing.T) {
	s := newSite(t)
	id := s.join()
	s.must(201, "POST", "/resource_pools", guidePool(id))
	refusals{
		{
			"another cluster", "PATCH", "/resource_pools/2",
			object{"cluster_id": "01J00000000000000000000000"},
			422,
			"cannot be changed",
		},
		{"another quota", "PATCH", "/resource_pools/2", object{"quota": object{"id": "another"}}, 422, "quota.id: Extra"},
		{"another quota, by its own path", "PATCH", "/resource_pools/2/quota", object{"id": "another"}, 422, "id: Extra"},
		{
			"another quota, PUT", "PUT", "/resource_pools/2/quota",
			object{"cpu": 9, "memory": 250, "gpu": 0, "id": "another"},
			422, "immutable",
		},
		{"a PUT without a platform", "PUT", "/resource_pools/2", guidePool(id), 422, "platform: Field required"},
		{
			"another default class", "PATCH", "/resource_pools/2",
			object{"classes": []any{object{"id": 2, "default": false}}},
			422, "default class",
		},
		{"half a factor", "PATCH", "/resource_pools/2", object{"cpu_limit_factor": 0.5}, 422, "cpu_limit_factor: Input"},
		{"a quota too small", "PATCH", "/resource_pools/2/quota", object{"memory": 1}, 422, "not compatible"},
		{"half a quota", "PUT", "/resource_pools/2/quota", object{"memory": 1}, 422, "cpu: Field required"},
		{
			"a class too large", "PATCH", "/resource_pools/2",
			object{"classes": []any{object{"id": 2, "memory": 300}}},
			422,
			"not compatible",
		},
		{
			"a class that is not there", "PATCH", "/resource_pools/2",
			object{"classes": []any{object{"id": 99}}},
			422,
			"Resource class '99' does not exist in resource pool '2'.",
		},
		{
			"a class without an id", "PATCH", "/resource_pools/2",
			object{"classes": []any{object{"memory": 3}}},
			422,
			"classes.0.id: Field required",
		},
		{"the quota of a pool that has none", "GET", "/resource_pools/1/quota", nil, 404, "does not have a quota"},
	}.play(t, s)
	got := s.must(
		200, "PATCH", "/resource_pools/2",
		object{"name": "Bern renamed", "cluster_id": id, "classes": []any{object{"id": 2, "memory": 3}}},
	).object(t)
	class := got["classes"].([]any)[0].(object)
	if got["name"] != "Bern renamed" || class["memory"] != 3.0 || class["name"] != "remote-default" ||
		len(got["classes"].([]any)) != 2 {
		t.Errorf("%v", got)
	}
	s.must(200, "PATCH", "/resource_pools/2/quota", object{"memory": 100})
	if got := s.must(200, "GET", "/resource_pools/2/quota", nil).object(t); got["memory"] != 100.0 ||
		got["id"] != "renku-pool-1" {
		t.Errorf("%v", got)
	}
	s.must(200, "PATCH", "/resource_pools/2", object{"cpu_limit_factor": 2, "idle_threshold": 60})
	whole := with(guidePool(id), object{"platform": "linux/amd64", "classes": []any{with(smallClass(), object{"id": 2})}})
	got = s.must(200, "PUT", "/resource_pools/2", whole).object(t)
	if got["name"] != "Bern pool" || len(got["classes"].([]any)) != 2 || got["cluster"].(object)["id"] != id ||
		got["cpu_limit_factor"] != nil || got["idle_threshold"] != 60.0 {
		t.Errorf("%v", got)
	}
	if got := s.must(200, "GET", "/resource_pools/2", nil).object(t)["quota"].(object); got["memory"] != 250.0 ||
		got["cpu"] != 5.0 {
		t.Errorf("the cluster has the quota %v", got)
	}
	got = s.must(200, "PUT", "/resource_pools/2", with(whole, object{"quota": nil})).object(t)
	if got["quota"] != nil || s.remote.get(quotasAt, quotaName) != nil || s.remote.get(classesAt, quotaName) != nil {
		t.Errorf("a PUT without a quota leaves %v", got["quota"])
	}
	// A new quota gets an id of Renku's.
	got = s.must(200, "PATCH", "/resource_pools/2", object{"quota": object{"cpu": 4, "memory": 250, "gpu": 0}}).object(t)
	if q := got["quota"].(object)["id"].(string); len(q) != 36 || s.remote.get(quotasAt, q) == nil {
		t.Errorf("id %q", q)
	}
	// A pool of the local cluster ignores the cluster that it is sent.
	s.must(201, "POST", "/resource_pools", localPool())
	if got := s.must(200, "PATCH", "/resource_pools/3", object{"cluster_id": id}).object(t); got["cluster"] != nil {
		t.Errorf("%v", got)
	}
}

func TestTheDefaultPoolStays(t *testing.T) {
	s := newSite(t)
	s.must(201, "POST", "/resource_pools", with(localPool(), object{"public": true, "default": true}))
	refusals{{"its end", "DELETE", "/resource_pools/2", nil, 422, "cannot be deleted"}}.play(t, s)
}

func TestMembers(t *testing.T) {
	const ana, ben = "3d6c2a9e-5b0f-4a52-9a3e-0d1d5a1e7c11", "8f14e45f-ceea-467f-a0e6-b7f2b2a6c7d2"
	const group, project, none = "01J0GR0VP00000000000000000", "01J0PR0JECT000000000000000", "01J00000000000000000000000"
	s := newSite(t)
	s.must(201, "POST", "/resource_pools", localPool())
	user := s.token(url.Values{"roles": {""}, "sub": {ana}})
	sees := func(token string) int { return s.as(token, "GET", "/resource_pools/2", nil).status }
	if sees(user) != 404 || sees("") != 404 || sees(s.admin) != 200 {
		t.Error("a private pool is for admins until somebody is added")
	}
	refusals{
		{"no list", "", "/resource_pools/2/users", object{"id": "x"}, 422, "wrong type"},
		{"no id", "", "/resource_pools/2/users", []any{object{}}, 422, "0.id: Field required"},
		{"an unknown key", "PUT", "/resource_pools/2/users", []any{object{"id": "x", "role": "y"}}, 422, "0.role: Extra"},
		{
			"a role of groups", "", "/resource_pools/2/members",
			[]any{object{"member_type": "user", "id": ben, "role": "group_viewer"}},
			422,
			"0.user.role: Input should be 'viewer' or 'prohibited'",
		},
		{
			"a role of users", "", "/resource_pools/2/members",
			[]any{object{"member_type": "project", "id": project, "role": "viewer"}},
			422, "0.project.role: Input",
		},
		{
			"no such role", "PUT", "/resource_pools/2/members",
			[]any{object{"member_type": "user", "id": "x", "role": "owner"}},
			422, "0.role: Input",
		},
		{
			"no such type", "", "/resource_pools/2/members",
			[]any{object{"member_type": "team", "id": "x", "role": "viewer"}},
			422, "0.member_type: Input",
		},
		{
			"a user that is not there", "", "/resource_pools/2/users",
			[]any{object{"id": "xx"}},
			404,
			"The users with IDs {'xx'} cannot be found",
		},
		{
			"a user whose id is none", "", "/resource_pools/2/users", []any{object{"id": "-"}}, 422, "0.id: String should match",
		},
		{
			"a group whose id is none", "", "/resource_pools/2/members",
			[]any{object{"member_type": "group", "id": "xx", "role": "group_viewer"}},
			422, "0.group.id: String should match",
		},
		{
			"a member that is not there", "", "/resource_pools/2/members",
			[]any{object{"member_type": "user", "id": "xx", "role": "viewer"}},
			404, "User with ID xx does not exist",
		},
		{
			"a group that is not there", "", "/resource_pools/2/members",
			[]any{object{"member_type": "group", "id": none, "role": "group_viewer"}},
			404,
			"The group with id " + none + " does not exist",
		},
		{
			"a project that is not there", "PUT", "/resource_pools/2/members",
			[]any{object{"member_type": "project", "id": none, "role": "project_viewer"}},
			404,
			"Project with id '" + none + "' does not exist",
		},
		{"a pool that is not there", "", "/resource_pools/9/users", []any{}, 404, "does not exist"},
	}.play(t, s)
	s.must(201, "POST", "/resource_pools/2/users", []any{object{"id": ana}})
	if sees(user) != 200 {
		t.Error("an added user does not see the pool")
	}
	if got := s.must(
		201, "POST", "/resource_pools/2/users", []any{object{"id": ana, "no_default_access": true}, object{"id": ben}},
	).list(t); len(got) != 2 {
		t.Errorf("%v", got)
	}
	s.must(200, "PUT", "/resource_pools/2/users", []any{})
	if sees(user) != 404 || len(s.must(200, "GET", "/resource_pools/2/users", nil).list(t)) != 0 {
		t.Error("PUT does not replace")
	}
	member := func(role string) []any { return []any{object{"member_type": "user", "id": ana, "role": role}} }
	s.must(201, "POST", "/resource_pools/2/members", member("viewer"))
	if sees(user) != 200 {
		t.Error("a viewer does not see the pool")
	}
	s.must(200, "PUT", "/resource_pools/2/members", member("prohibited"))
	if sees(user) != 404 || len(s.must(200, "GET", "/resource_pools/2/members", nil).list(t)) != 1 {
		t.Error("who is prohibited sees the pool")
	}
	s.must(200, "PATCH", "/resource_pools/2", object{"public": true})
	if sees(user) != 404 || sees("") != 200 {
		t.Error("who is prohibited sees a public pool, or others do not")
	}
	if got, want := text(s.must(200, "PUT", "/resource_pools/2/members", []any{
		object{"member_type": "user", "id": ana, "role": "viewer"},
		object{"member_type": "group", "id": group, "role": "group_viewer"},
		object{"member_type": "project", "id": project, "role": "project_viewer"},
	}).list(t)), `[{"email":"ana@example.org","id":"`+ana+`","member_type":"user","role":"viewer"},`+
		`{"id":"`+group+`","member_type":"group","name":"A group","role":"group_viewer","slug":"a-group"},`+
		`{"id":"`+project+
		`","member_type":"project","name":"A project","namespace":"ana/a-project","role":"project_viewer"}]`; got != want {
		t.Errorf("%s", got)
	}
}
