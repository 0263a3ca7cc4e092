package renku_test

import (
	"os"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

var assets = os.DirFS("../../../assets/renku")

func seeded(t *testing.T) *clustertest.Sandbox {
	box := clustertest.Start(t)
	box.Seed(t, "renku")
	return box
}

func TestCycle(t *testing.T) {
	// a Job whose pods have to run; what has nothing to undo; what TestVerifyASessionIsMadeFollowedAndTakenBack undoes
	elsewhere := []string{"reach-job", "sign-in", "members", "test-session"}
	stepstest.FirstCycle(t, renku.Guide(), "cycle", elsewhere, func(t *testing.T, name string) []string {
		box := seeded(t)
		answers := site(t, box, map[string]any{"sessions.namespace": "cycle-sessions"})
		return stepstest.CycleBut(t, box, renku.Guide(), assets, name, answers, "priority-classes") // go with Renku's quotas
	})
}

func verdict(t *testing.T, s *engine.Session, check string, side steps.Side) steps.Result {
	t.Helper()
	_, step := s.Guide().Check(check)
	b, _ := s.Look(t.Context(), s.Guide().Cells())
	return b.Verdict(steps.Cell{Step: step.Name, Check: check, Side: side})
}

// passed waits until a check passes, and returns its last verdict.
func passed(t *testing.T, s *engine.Session, check string, side steps.Side) steps.Result {
	t.Helper()
	return stepstest.Once(t, s, check, side, func(v steps.Status) bool { return v == steps.Pass })
}

// Two links of one guide to the same clusters and the same objects.
func TestVerifyTwoLinksShareAndDoNotHurtEachOther(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	before := stepstest.Snapshot(t, box)
	answers := site(
		t, box,
		map[string]any{
			"sessions.namespace": "shared-sessions", "identity.name": "shared", "pools.quotas": []any{"shared-pool"},
		},
	)
	a := stepstest.Open(t, box, renku.Guide(), assets, "a", answers)
	answers["pools.quotas"] = []any{"other-pool", "shared-pool"} // a pool of Renku's has a quota of its own
	b := stepstest.Open(t, box, renku.Guide(), assets, "b", answers)
	stepstest.Apply(t, a)
	stepstest.Apply(t, b)
	stepstest.Green(t, a)
	stepstest.Green(t, b)
	said := false
	for _, planned := range stepstest.Undo(t, a).Actions {
		for _, item := range planned.Change.Items {
			said = said || item.What == "PriorityClass shared-pool" &&
				strings.Contains(item.Note, "run carrick apply for link b afterwards")
		}
	}
	if !said {
		t.Error("the plan does not say that link b has to apply its PriorityClass again")
	}
	if v := verdict(t, b, "priority-classes", steps.Remote); v.Status != steps.Fail ||
		!strings.Contains(v.Found, "shared-pool") {
		t.Errorf("Renku deletes the PriorityClass with the pool of link a: got %v %q", v.Status, v.Found)
	}
	stepstest.Apply(t, b)
	stepstest.Green(t, b)
	if p := stepstest.Undo(t, a); !p.Empty() {
		t.Errorf("a second undo would still do: %+v", p.Actions)
	}
	stepstest.Undo(t, b)
	after := stepstest.Snapshot(t, box)
	for k := range after {
		if _, was := before[k]; !was {
			t.Errorf("left behind: %s", k)
		}
	}
}

func TestVerifyADeletedBindingIsNamedWithItsFix(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t)
	s := stepstest.Open(
		t, box, renku.Guide(), assets, "binding", site(t, box, map[string]any{"sessions.namespace": "binding-sessions"}),
	)
	stepstest.Apply(t, s)
	defer stepstest.Undo(t, s)
	box.Run(t, clustertest.Remote, "", "-n", "binding-sessions", "delete", "rolebinding", "renku-binding")
	fresh := stepstest.Open(
		t, box, renku.Guide(), assets, "binding", site(t, box, map[string]any{"sessions.namespace": "binding-sessions"}),
	)
	v := verdict(t, fresh, "role-binding", steps.Remote)
	if v.Status != steps.Fail || !strings.Contains(v.Found, "binding-sessions/renku-binding") || v.Fix == "" {
		t.Errorf("got %v %q, fix %q", v.Status, v.Found, v.Fix)
	}
	stepstest.Apply(t, fresh)
	stepstest.Green(t, fresh)
}

// What stood there before, and what others put there, stays.
func TestVerifyUndoLeavesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	box.Run(t, clustertest.Remote, "", "create", "namespace", "old-sessions")
	box.Run(t, clustertest.Remote, "", "-n", "old-sessions", "create", "serviceaccount", "renku-old")
	defer box.Run(t, clustertest.Remote, "", "delete", "namespace", "old-sessions")
	s := stepstest.Open(
		t, box, renku.Guide(), assets, "old", site(t, box, map[string]any{"sessions.namespace": "old-sessions"}),
	)
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	stepstest.Undo(t, s)
	got := box.Run(
		t, clustertest.Remote, "", "-n", "old-sessions", "get", "serviceaccount", "renku-old", "-o",
		"jsonpath={.metadata.labels}{.metadata.annotations}",
	)
	if got != "" {
		t.Errorf("the ServiceAccount still carries %s", got)
	}
	if rest := box.Run(
		t, clustertest.Remote, "", "-n", "old-sessions", "get", "secrets,roles,rolebindings,networkpolicies", "-o", "name",
	); rest != "" {
		t.Errorf("left behind: %s", rest)
	}
}

func TestVerifyANamespaceWithSomethingOfOthersIsLeft(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	s := stepstest.Open(
		t, box, renku.Guide(), assets, "busy", site(t, box, map[string]any{"sessions.namespace": "busy-sessions"}),
	)
	stepstest.Apply(t, s)
	box.Run(t, clustertest.Remote, "", "-n", "busy-sessions", "create", "configmap", "precious")
	p := stepstest.Undo(t, s)
	var note string
	for _, a := range p.Actions {
		for _, it := range a.Change.Items {
			if it.Verb == steps.Leave {
				note += it.What + " " + it.Note
			}
		}
	}
	if !strings.Contains(note, "ConfigMap precious") {
		t.Errorf("the plan says %q", note)
	}
	box.Run(t, clustertest.Remote, "", "-n", "busy-sessions", "get", "configmap", "precious")
	box.Run(t, clustertest.Remote, "", "-n", "busy-sessions", "delete", "configmap", "precious")
	stepstest.Undo(t, s)
	if left := box.Run(
		t, clustertest.Remote, "", "get", "namespace", "busy-sessions", "--ignore-not-found", "-o", "name",
	); left != "" {
		t.Errorf("%s is left although nothing is in it", left)
	}
}

// A field of somebody else stops the plan, and can be taken over and given
// back.
func TestVerifyAFieldOfOthersIsAskedFor(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	const class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: conflict-pool, labels: {app: " +
		"other}}\nvalue: 100\npreemptionPolicy: Never\n"
	box.Run(t, clustertest.Remote, class, "apply", "--server-side", "--field-manager=somebody", "-f", "-")
	defer box.Run(t, clustertest.Remote, "", "delete", "priorityclass", "conflict-pool")
	s := stepstest.Open(
		t, box, renku.Guide(), assets, "conflict",
		site(t, box, map[string]any{"sessions.namespace": "conflict-sessions", "pools.quotas": []any{"conflict-pool"}}),
	)
	p, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"priority-classes"}})
	if err != nil {
		t.Fatal(err)
	}
	c := p.Conflicts()
	if len(c) != 1 || c[0].Conflicts[0].Manager != "somebody" || !strings.Contains(c[0].Conflicts[0].Field, "app") {
		t.Fatalf("conflicts: %+v", c)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err == nil ||
		!strings.Contains(err.Error(), "--take-over") {
		t.Fatalf("applied without being allowed to: %v", err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true}, nil); err != nil {
		t.Fatal(err)
	}
	stepstest.Undo(t, s)
	if got := box.Run(
		t, clustertest.Remote, "", "get", "priorityclass", "conflict-pool", "-o", "jsonpath={.metadata.labels.app}",
	); got != "other" {
		t.Errorf("the label is %q, not what it was", got)
	}
}

// Rights that are missing are found before anything is written.
func TestVerifyMissingRightsAreFoundFirst(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t)
	s := stepstest.Open(
		t, box, renku.Guide(), assets, "rights", site(t, box, map[string]any{"sessions.namespace": "rights-sessions"}),
	)
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if lacking, err := s.MissingPermissions(t.Context(), p); err != nil || len(lacking) != 0 {
		t.Errorf("an admin lacks %v, %v", lacking, err)
	}
}
