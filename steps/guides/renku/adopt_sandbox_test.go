package renku_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

// takenOn adopts the existing setup of the sandbox with a new link of the given name.
func takenOn(
	t *testing.T, box *clustertest.Sandbox, name string, answers map[string]any,
) (*engine.Session, map[string]engine.Adopted) {
	t.Helper()
	s := stepstest.Open(t, box, renku.Guide(), assets, name, answers)
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

// answersOf returns all current answers of a session except secrets, by key.
func answersOf(t *testing.T, s *engine.Session) map[string]any {
	t.Helper()
	out := map[string]any{}
	for i := range s.Guide().Steps {
		for _, a := range s.Answers(t.Context(), &s.Guide().Steps[i]) {
			if !a.Question.Secret && a.Asked {
				out[a.Question.Key] = a.Value
			}
		}
	}
	return out
}

// A setup that follows the published page uses names of its own. Adoption finds these names, so the
// checks report the gaps of the setup and do not report existing objects as missing.
func TestVerifyThePublishedPageIsAdopted(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "adopt")
	box := seeded(t)
	if s, _ := takenOn(t, box, "nothing", nil); true {
		b, _ := s.Look(t.Context(), s.Guide().Cells())
		if holds, _ := s.Standing(b); holds != 0 {
			t.Errorf("%d things stand where nobody made any", holds)
		}
	}
	box.SeedFault(t, "renku", "page")
	s, of := takenOn(t, box, "theirs", site(t, box, nil))
	for key, want := range map[string]any{
		"identity.name": "cross-cluster-sa", "identity.token-secret": "cross-cluster-sa-secret",
		"cluster.config-name": "remote-cluster.yaml",
		"cluster.name":        "Remote Cluster", "pools.quotas": []string{"renku-resource-pool-1-priority-class"},
		"sessions.path": "/sessions",
	} {
		if !reflect.DeepEqual(s.Link().Answers[key], want) || of[key].From == "" {
			t.Errorf("%s is %v (%+v), want %v", key, s.Link().Answers[key], of[key], want)
		}
	}
	for key, why := range map[string]string{
		"sessions.storage-class": "which does not exist on the", "sessions.ingress-class": "which does not exist on the",
		"sessions.host": "login allows",
	} {
		if !of[key].ByHand() || !strings.Contains(of[key].Why, why) {
			t.Errorf("%s: what can't work was taken for an answer: %+v", key, of[key])
		}
	}
	b, _ := s.Look(t.Context(), s.Guide().Cells())
	for _, check := range []string{"service-account", "role-binding", "token-secret", "priority-classes", "namespace"} {
		_, step := s.Guide().Check(check)
		if v := b.Verdict(steps.Cell{Step: step.Name, Check: check, Side: steps.Remote}); v.Status != steps.Pass {
			t.Errorf("%s stands under another name, and the check says %s: %s", check, v.Status, v.Found)
		}
	}
	for _, f := range []fault{
		{
			"priorityclasses-binding", steps.Remote,
			"no ClusterRoleBinding names ServiceAccount renku-user-sessions/cross-cluster-sa", "",
		},
		{
			"stored-kubeconfig", steps.Local, "current-context is not set",
			"saved in " + s.Link().Answers["secret.backup"].(string),
		},
		{"cluster-as-planned", steps.Local, "session_ingress_use_default_cluster_tls_cert", ""},
		{"pool-exists", steps.Local, `Renku has no pool named "Remote Cluster"`, ""},
	} {
		_, step := s.Guide().Check(f.check)
		if v := b.Verdict(steps.Cell{Step: step.Name, Check: f.check, Side: f.side}); v.Status != steps.Fail ||
			!strings.Contains(v.Found, f.found) || !strings.Contains(v.Fix, f.fix) {
			t.Errorf("%s: %s: %s\nfix: %s", f.check, v.Status, v.Found, v.Fix)
		}
	}
	file, err := os.ReadFile(s.Link().Path)
	if err != nil || strings.Contains(string(file), "eyJ") {
		t.Errorf("the link file holds a token, or can't be read: %v", err)
	}
	for _, a := range of {
		if strings.Contains(a.From+a.Why+fmt.Sprint(a.Value), "eyJ") {
			t.Errorf("%s tells a token", a.Question.Key)
		}
	}
}

// After the link file is lost, adoption recovers all answers of a setup, including answers that are
// not the default.
func TestVerifyALostLinkFileIsFoundAgain(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "adopt")
	box := seeded(t)
	given := map[string]any{
		"sessions.namespace": "abroad-sessions", "pools.quotas": []any{"abroad-quota"}, "network.isolate": false,
		"identity.name": "abroad-sa", "identity.token-secret": "abroad-token", "cluster.config-name": "abroad.yaml",
		"cluster.name":  "Far Abroad",
		"sessions.path": "/abroad", "sessions.annotations": []any{"example.org/team=ana"},
		"operator.release": "abroad-operator",
		"pool.members":     []any{"user:3d6c2a9e-5b0f-4a52-9a3e-0d1d5a1e7c11"},
		"pool.spec": "name: Far Pool\npublic: false\ndefault: false\nplatform: linux/amd64\nquota: {cpu: 3, memory: 30, " +
			"gpu: 0, id: abroad-quota}\n" +
			"classes:\n  - {name: far-small, cpu: 0.5, memory: 1, gpu: 0, max_storage: 4, default_storage: 1, default: true}\n",
	}
	made := stepstest.Open(t, box, renku.Guide(), assets, "abroad", site(t, box, given))
	stepstest.Apply(t, made)
	want := answersOf(t, made)

	s, of := takenOn(t, box, "abroad", site(t, box, nil))
	got := answersOf(t, s)
	for key, v := range want {
		if key == "pool.spec" { // which is written in another way, and says the same
			continue
		}
		if fmt.Sprint(got[key]) != fmt.Sprint(v) {
			t.Errorf("%s was %v and is found as %v: %+v", key, v, got[key], of[key])
		}
	}
	if links := s.MarkedLinks(t.Context()); len(links) != 1 || links[0] != "abroad" {
		t.Errorf("made by the links %v", links)
	}
	if p, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !p.Empty() {
		t.Errorf("with the answers that were found apply would change %+v: %v", p, err)
	}
	stepstest.Undo(t, s)
}
