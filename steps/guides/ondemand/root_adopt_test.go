package ondemand

import (
	"os"
	"strings"
	"testing"

	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

// adopted returns what carrick adopts for the question key in a test state. No other question is adopted.
func adopted(t *testing.T, state, key string) engine.Adopted {
	t.Helper()
	g := Guide()
	for i := range g.Steps { // keep the state's answers to all other questions
		for j := range g.Steps[i].Ask {
			if q := &g.Steps[i].Ask[j]; q.Key != key && q.Key != "registry.host" {
				q.Adopt = nil
			}
		}
	}
	s := stepstest.Stand(t, g, os.DirFS("../../../assets/ondemand"), "testdata", state)
	if err := s.Answer(key, nil); err != nil {
		t.Fatal(err)
	}
	all, err := s.Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Question.Key == key {
			return a
		}
	}
	t.Fatalf("nothing is said of %s", key)
	return engine.Adopted{}
}

func TestWhatOfTheRegistryAndKubectlIsTakenOn(t *testing.T) {
	for _, c := range []struct {
		state, key, want, from string
		how                    engine.AdoptedHow
	}{
		{"healthy", "registry.enabled", "true", "IMAGE_PULL_SECRET in /etc/ood/config/hook.env", engine.ByFinding},
		{"registry-unused", "registry.enabled", "false", "", engine.ByDefault},
		{"healthy", "registry.host", "127.0.0.1:", "/etc/ood/config/image-registry.json", engine.ByFinding},
		{"registry-of-another", "registry.host", "ghcr.io", "/etc/ood/config/image-registry.json", engine.ByFinding},
		{"healthy", "registry.user", "robot$ood", "/etc/ood/config/image-registry.json", engine.ByFinding},
		{"registry-hook-astray", "registry.secret", "x", "IMAGE_PULL_SECRET in /etc/ood/config/hook.env", engine.ByFinding},
		{"cluster-file-none", "kubectl.path", "/usr/local/bin/kubectl", "the web node", engine.ByFinding},
		{
			"kubectl-elsewhere", "kubectl.path", "/opt/kubectl", "job.bin in /etc/ood/config/clusters.d/test.yml",
			engine.ByFinding,
		},
	} {
		a := adopted(t, c.state, c.key)
		if got := strings.TrimSpace(toText(a.Value)); !strings.HasPrefix(got, c.want) || !strings.HasPrefix(a.From, c.from) ||
			a.How != c.how {
			t.Errorf("%s, %s: got %q from %q (%v, %s)", c.state, c.key, got, a.From, a.How, a.Why)
		}
	}
	a := adopted(t, "registry-wrapped", "registry.host")
	if a.Value != nil || !strings.Contains(a.Why, "several lines") || strings.Contains(a.Why, "cm9ib3Q") {
		t.Errorf("a file that can't be read: %+v", a)
	}
}

// TestWhichReapersAreTakenOn verifies which installed reapers carrick adopts. A Deployment on which a user has set a
// reaper's label is not adopted.
func TestWhichReapersAreTakenOn(t *testing.T) {
	for _, c := range []struct {
		state, key, from string
		how              engine.AdoptedHow
	}{
		{"healthy", "walltime.enabled", "Deployment job-pod-reaper/job-pod-reaper", engine.ByFinding},
		{"healthy", "idle.enabled", "Deployment k8-namespace-reaper/k8-namespace-reaper", engine.ByFinding},
		{"reaper-elsewhere", "walltime.enabled", "Deployment tools/reaper-job-pod-reaper", engine.ByFinding},
		{"reaper-planted", "walltime.enabled", "", engine.ByDefault},
		{"reaper-planted", "idle.enabled", "", engine.ByDefault},
	} {
		a := adopted(t, c.state, c.key)
		if on := toText(a.Value) == "true"; on != (c.from != "") || !strings.HasPrefix(a.From, c.from) || a.How != c.how {
			t.Errorf("%s, %s: got %v from %q (%v, %s)", c.state, c.key, a.Value, a.From, a.How, a.Why)
		}
	}
}

func toText(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "true"
		}
		return "false"
	case string:
		return v
	}
	return ""
}
