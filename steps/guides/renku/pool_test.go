package renku

import (
	"os"
	"strings"
	"testing"

	"carrick/steps"
)

const goodPool = `name: A pool
public: false
default: false
platform: linux/arm64
idle_threshold: 0
hibernation_threshold: 3600
hibernation_warning_period: 600
cpu_limit_factor: 2.5
cluster_id: ${REMOTE_CLUSTER_ULID}
quota: {cpu: 5.5, memory: 32, gpu: 1, id: a-pool}
classes:
  - name: small
    cpu: 0.5
    memory: 2
    gpu: 0
    max_storage: 4
    default_storage: 1
    default: true
    quota_enforced: true
    tolerations: [renku.io/dedicated]
    node_affinities: [{key: renku.io/pool, required_during_scheduling: true}]
`

func TestPoolRules(t *testing.T) {
	d, err := readPool([]byte(goodPool))
	if err != nil || len(d.problems()) > 0 {
		t.Fatalf("a good pool: %v %v", err, d.problems())
	}
	if d.payload["cluster_id"] != nil || d.Factor != 2.5 || d.Quota.CPU != 5.5 {
		t.Errorf("read as %+v, payload %v", d.pool, d.payload)
	}
	for _, tc := range []struct{ from, to, why string }{
		{"name: A pool", "name: Pool", `line 1: name of the pool is invalid: "Pool" has 4 characters`},
		{"public: false", "public: 'no'", "line 2: public of the pool is neither true nor false"},
		{"default: false", "defaults: false", `line 3: the pool has the unknown field "defaults"`},
		{"default: false", "default: false\ndefault: false", `line 4: the pool has "default" twice`},
		{"default: false\n", "", "the pool has no default"},
		{"linux/arm64", "arm64", "line 4: platform of the pool"},
		{"idle_threshold: 0", "idle_threshold: -1", "line 5: idle_threshold"},
		{"period: 600", "period: 3600", "line 7: hibernation_warning_period (3600 s)"},
		{"factor: 2.5", "factor: 0.5", "line 8: cpu_limit_factor"},
		{"${REMOTE_CLUSTER_ULID}", "1234", "line 9: cluster_id"},
		{"memory: 32", "memory: 32.5", "line 10: memory of the quota"},
		{"memory: 32", "memory: 1", "exceeds the quota"},
		{"id: a-pool", "id: A_pool", "line 10: id of the quota"},
		{"id: a-pool", "id: 12345", "line 10: id of the quota is not a string"},
		{", id: a-pool", "", "the quota has no id"},
		{"name: small", "name: x", "line 12: name of class 1"},
		{"    cpu: 0.5\n", "", "line 12: class 1 has no cpu"},
		{"cpu: 0.5", "cpu: many", "line 13: cpu of class 1"},
		{"max_storage: 4", "max_storage: 0", "line 16: max_storage of class 1"},
		{"default_storage: 1", "default_storage: 5", "default_storage 5 GB, but max_storage 4"},
		{"default: true", "default: false", "exactly one class must be the default, but 0 classes are"},
		{"[renku.io/dedicated]", "[renku.io/dedicated=user]", "line 20: tolerations of class 1 has an invalid item"},
		{"key: renku.io/pool", "label: renku.io/pool", `has the unknown field "label"`},
		{"required_during_scheduling: true", "required_during_scheduling: 1", "neither true nor false"},
		{"public: false\ndefault: false", "public: false\ndefault: true", "line 3: a default pool must be public"},
		{"public: false\ndefault: false", "public: true\ndefault: true", "line 10: a default pool cannot have a quota"},
		{"classes:", "klasses:", "the pool has no classes"},
	} {
		text := strings.Replace(goodPool, tc.from, tc.to, 1)
		if text == goodPool {
			t.Fatalf("%q is not in the pool", tc.from)
		}
		d, err := readPool([]byte(text))
		if said := strings.Join(d.problems(), "; "); err != nil || !strings.Contains(said, tc.why) {
			t.Errorf("%q for %q: %v, problems %q, want %q", tc.to, tc.from, err, said, tc.why)
		}
	}
	for text, why := range map[string]string{
		"": "empty", "a: [": "yaml", goodPool + "---\nname: Another\n": "more than one YAML document",
	} {
		if _, err := readPool([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.20q: error %v", text, err)
		}
	}
	if d, err := readPool([]byte("- a\n")); err != nil || len(d.problems()) == 0 {
		t.Errorf("a list is taken for a pool: %v", err)
	}
}

// The quota counts GB and the class GiB.
func TestAClassAsLargeAsItsQuotaNeverStarts(t *testing.T) {
	d := described{
		pool: pool{
			Quota: &quota{CPU: 2, Memory: 16},
			Classes: []resourceClass{
				{Name: "a", CPU: 1.8, Memory: 14}, {Name: "b", CPU: 2, Memory: 14}, {Name: "c", CPU: 1, Memory: 16},
			},
		},
	}
	got := strings.Join(d.tooTight(), "; ")
	if strings.Contains(got, "class a") || !strings.Contains(got, "class b needs 2.2 CPUs") ||
		!strings.Contains(got, "class c needs 17.5 GB") {
		t.Errorf("got %q", got)
	}
}

// The example keeps Renku's rules as it stands.
func TestTheExamplePoolIsAPool(t *testing.T) {
	data, err := os.ReadFile("../../../assets/renku/" + poolAsset)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := readPool(data); err != nil || len(d.problems()) > 0 || len(d.tooTight()) > 0 {
		t.Errorf("%v %v %v", err, d.problems(), d.tooTight())
	}
}

func TestPoolsOfOneName(t *testing.T) {
	here := pool{ID: 1, Cluster: clusterOf{"A"}}
	local := pool{ID: 2}
	for _, tc := range []struct {
		named  []pool
		status steps.Status
		found  string
	}{
		{nil, steps.Fail, noPool},
		{[]pool{here}, steps.Pass, "id 1"},
		{[]pool{here, {ID: 3, Cluster: clusterOf{"A"}}}, steps.Fail, "2 pools"},
		{[]pool{local}, steps.Fail, "2 on the local cluster"},
		{[]pool{here, local}, steps.Warn, "the same name as pool 2 on the local cluster"},
	} {
		if r := judgePools("p", "A", tc.named); r.Status != tc.status || !strings.Contains(r.Found, tc.found) {
			t.Errorf("%v: %v %s", tc.named, r.Status, r.Found)
		}
	}
}
