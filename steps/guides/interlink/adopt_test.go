package interlink_test

import (
	"fmt"
	"strings"
	"testing"

	"carrick/steps"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// adopted returns the answers that carrick adopts from a recorded state, with the given answers set. If carrick cannot
// determine an answer, the reason follows the default.
func adopted(t *testing.T, state string, given steps.Given) map[string]string {
	t.Helper()
	s := stepstest.Stand(t, interlink.Guide(), assets, "testdata", state)
	for key := range s.Link().Answers {
		if err := s.Answer(key, given[key]); err != nil {
			t.Fatal(err)
		}
	}
	for key, v := range given {
		if err := s.Answer(key, v); err != nil {
			t.Fatal(err)
		}
	}
	found, err := s.Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, a := range found {
		out[a.Question.Key] = fmt.Sprint(a.Value)
		if a.Why != "" {
			out[a.Question.Key] += ", not found out: " + a.Why
		}
	}
	return out
}

// Any user with a namespace can create a Service, a Deployment, an Ingress or a ConfigMap with any name in it, even
// with carrick's labels. carrick must not let these objects decide where jobs send their tokens.
func TestWhatATenantPlantsIsNotAdopted(t *testing.T) {
	t.Parallel()
	const image = "docker.io/nginxinc/nginx-unprivileged:1.28-alpine"
	for _, c := range []struct {
		state string
		given steps.Given
		want  map[string]string // expected prefix of each answer
	}{
		{"planted", nil, map[string]string{
			"exposure.mode": "proxy", "exposure.namespace": "interlink-api", "exposure.type": "LoadBalancer",
			"exposure.image": image,
			"vk.namespace":   "interlink", "workload.namespace": "default", "workload.account": "default",
			"workload.argo": "false",
		}},
		{"planted-alone", nil, map[string]string{
			"exposure.mode": "proxy, not found out: Ingress a-tenant/api, Service a-tenant/k8s-api-proxy may belong to " +
				"another user",
			"exposure.namespace": "interlink-api, not found out: Service a-tenant/k8s-api-proxy", "exposure.type": "NodePort",
			"exposure.image": image,
		}},
		// the objects really belong to this set-up, as the given answers say
		{"planted-alone", steps.Given{"exposure.namespace": "a-tenant", "vk.namespace": "interlink"}, map[string]string{
			"exposure.mode": "proxy", "vk.namespace": "interlink", "exposure.address": "127.0.0.1",
			"exposure.type": "NodePort, not found out: the Service a-tenant/k8s-api-proxy opens no port",
			"exposure.image": image +
				", not found out: image registry.example.org/theirs:1 of Deployment a-tenant/k8s-api-proxy",
		}},
		{
			"planted-alone",
			steps.Given{"exposure.namespace": "a-tenant", "exposure.mode": "ingress"},
			map[string]string{"exposure.mode": "ingress", "exposure.namespace": "a-tenant"},
		},
		{"made-elsewhere", nil, map[string]string{
			"exposure.mode": "proxy", "exposure.namespace": "jobs-api", "exposure.type": "NodePort",
			"workload.namespace": "jobs", "workload.account": "worker", "workload.argo": "true",
		}},
		{
			"planted",
			steps.Given{"exposure.mode": "ingress"},
			map[string]string{"exposure.namespace": "ingress-nginx-internal, not found out: Ingress a-tenant/api"},
		},
		{
			"ingress",
			steps.Given{"exposure.mode": "ingress"},
			map[string]string{
				"exposure.namespace": "ingress-nginx-internal", "vk.namespace": "interlink", "exposure.address": "127.0.0.1",
			},
		},
	} {
		got := adopted(t, c.state, c.given)
		for key, want := range c.want {
			if found := got[key]; !strings.HasPrefix(found, want) || !strings.Contains(want, "not found out") && found != want {
				t.Errorf("%s, with %v: %s is found to be %s; want %s", c.state, c.given, key, found, want)
			}
		}
	}
}
