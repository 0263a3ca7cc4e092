package liqo_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// takenOn adopts the existing peering of the sandbox into a new link with that name. It returns the session and the
// adopted answers by key.
func takenOn(t *testing.T, box *clustertest.Sandbox, name string) (*engine.Session, map[string]engine.Adopted) {
	t.Helper()
	s := stepstest.Open(t, box, liqo.Guide(), assets, name, nil)
	s.Link().Path = filepath.Join(t.TempDir(), name+".yaml")
	list, err := s.Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SaveAdopted(list); err != nil {
		t.Fatal(err)
	}
	out := map[string]engine.Adopted{}
	for _, a := range list {
		out[a.Question.Key] = a
	}
	return s, out
}

func answersOf(t *testing.T, s *engine.Session) map[string]any {
	t.Helper()
	out := map[string]any{}
	for i := range s.Guide().Steps {
		for _, a := range s.Answers(t.Context(), &s.Guide().Steps[i]) {
			if a.Asked {
				out[a.Question.Key] = a.Value
			}
		}
	}
	return out
}

func TestVerifyThePublishedPageIsAdopted(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "adopt")
	box := seeded(t)
	if s, _ := takenOn(t, box, "nothing"); true {
		b, _ := s.Look(t.Context(), s.Guide().Cells())
		if holds, _ := s.Standing(b); holds != 0 {
			t.Errorf("%d objects exist where none were created", holds)
		}
	}
	box.SeedFault(t, "liqo", "page")
	s, of := takenOn(t, box, "theirs")
	for key, want := range map[string]any{
		"offloading.namespace": "demo", "network.enabled": true, "provider.ca": "cluster", "network.node-port": 30742,
		"tenant.name": "my-tenant", "resources.cpu": "20",
	} {
		if fmt.Sprint(of[key].Value) != fmt.Sprint(want) || of[key].From == "" {
			t.Errorf("%s is %+v, want %v", key, of[key], want)
		}
	}
	if len(s.Link().Answers) != 0 {
		t.Errorf("the defaults read all of it off the objects, and yet is written: %v", s.Link().Answers)
	}
	for _, f := range []fault{
		{"configuration", steps.Local, "no Configuration", "--step network"},
		{"slice", steps.Local, "liqo.io/replication", "--step resources"},
	} {
		says(t, s, f)
	}
}

// A peering was created with answers other than the defaults, and its link file is lost. Adopting the peering recovers
// all answers.
func TestVerifyALostLinkFileIsFoundAgain(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "adopt")
	for name, given := range map[string]map[string]any{
		"lost": {
			"consumer.tenant-namespace": "peer-of-milan", "provider.tenant-namespace": "peer-of-rome",
			"network.server": "consumer", "network.node-port": 30751, "network.port": 51900, "network.mtu": 1300,
			"auth.kind": "service-account", "tenant.name": "the-tenant", "tenant.condition": "Active",
			"resources.cpu": "2", "resources.memory": "3Gi", "resources.pods": "20",
			"resources.other":      []any{"example.org/gpu=1"},
			"offloading.namespace": "shop", "offloading.pods": "Remote", "offloading.mapping": "SelectedName",
			"offloading.remote-name": "shop-abroad", "offloading.clusters": []any{"liqo.io/remote-cluster-id=rome"},
		},
		"tunnelless": {"network.enabled": "no", "offloading.namespace": "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			box := seeded(t)
			made := stepstest.Open(t, box, liqo.Guide(), assets, name, given)
			stepstest.Apply(t, made)
			want := answersOf(t, made)
			s, of := takenOn(t, box, name)
			got := answersOf(t, s)
			for key, v := range want {
				if fmt.Sprint(got[key]) != fmt.Sprint(v) {
					t.Errorf("%s was %v and is found as %v: %+v", key, v, got[key], of[key])
				}
			}
			if p, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !p.Empty() {
				t.Errorf("with the answers that were found apply would change %+v: %v", p, err)
			}
		})
	}
}
