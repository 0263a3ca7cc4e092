package vsphere_test

import (
	"encoding/json"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// leftovers contains a PodSecurityPolicy binding as the published guide creates it, and a binding
// to a role that grants more.
const leftovers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "psp:vmware-system-privileged"}
rules: [{apiGroups: [policy], resources: [podsecuritypolicies], resourceNames: [vmware-system-privileged], verbs: [use]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "psp:and-more"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}, {apiGroups: [policy], resources: [podsecuritypolicies], verbs: [use]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: rb-all-sa_ns-alice, namespace: alice}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "psp:vmware-system-privileged"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:alice"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: rb-all-sa_ns-bob, namespace: bob}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "psp:and-more"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:bob"}]
`

// doing opens a link and applies some of its actions.
func doing(t *testing.T, box *clustertest.Sandbox, more map[string]any, actions ...string) *engine.Session {
	t.Helper()
	s := stepstest.Open(t, box, vsphere.Guide(), assets, "parts", stepstest.Given(t, box, vsphere.Guide(), more))
	p, err := s.Plan(t.Context(), engine.Scope{Actions: actions})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// verdict waits until a check has the wanted status and returns the result.
func verdict(t *testing.T, s *engine.Session, name string, want steps.Status) steps.Result {
	t.Helper()
	cell := steps.Cell{Check: name, Side: steps.Local}
	for _, c := range s.Guide().Cells() {
		if c.Check == name {
			cell = c
		}
	}
	var last steps.Result
	err := s.Follow(
		t.Context(), []steps.Cell{cell}, func(b *engine.Board, _ map[steps.Cell]engine.Look, _ steps.Cell) bool {
			last = b.Verdict(cell)
			return last.Status != want
		},
	)
	if err != nil {
		t.Fatalf("%s: %v: %s: %s", name, err, last.Status, last.Found)
	}
	return last
}

func TestVerifyLeftoversAreDeletedAndNothingElse(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t, "")
	box.Run(t, clustertest.Local, leftovers, "apply", "-f", "-")
	doing(t, box, map[string]any{"security.leftovers": true}, "leftovers")
	if left := box.Run(
		t, clustertest.Local, "", "get", "rolebindings", "-A", "-o", "name",
	); strings.Contains(left, "rb-all-sa_ns-alice") || !strings.Contains(left, "rb-all-sa_ns-bob") {
		t.Errorf("left are %s", left)
	}
	again, err := stepstest.Open(
		t, box, vsphere.Guide(), assets, "parts", map[string]any{"security.leftovers": true},
	).Plan(t.Context(), engine.Scope{Actions: []string{"leftovers"}})
	if err != nil || !again.Empty() {
		t.Errorf("there is something to do still: %v %+v", err, again)
	}
}

// If a deployment of Kubeflow removes the pod security level from the labels file, carrick sets it
// again. An undo then restores the content that the deployment wrote, without carrick's label in it.
func TestVerifyALevelOutlivesADeployOfKubeflow(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t, "")
	s := doing(t, box, nil, "profile-labels")
	verdict(t, s, "labels-file", steps.Pass)
	verdict(t, s, "profile-levels", steps.Pass)
	writeLabels(t, box, "# new\nteam: \"a\"\npod-security.kubernetes.io/warn: \"restricted\"\n")
	verdict(t, s, "labels-file", steps.Fail)
	p, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"profile-labels"}})
	if err != nil {
		t.Fatal(err)
	}
	if it := p.Actions[0].Change.Items[0]; !strings.Contains(it.Note, "changed since carrick wrote it") {
		t.Errorf("the plan does not say so: %+v", it)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true}, nil); err != nil {
		t.Fatal(err)
	}
	verdict(t, s, "labels-file", steps.Pass)
	if now := labelsText(t, box); !strings.HasPrefix(now, "# new\nteam: \"a\"\n") || !strings.Contains(now, `enforce: "baseline"`) {
		t.Errorf("it is %s", now)
	}
	stepstest.Undo(t, s)
	if now := labelsText(t, box); strings.TrimSpace(now) != "# new\nteam: \"a\"" {
		t.Errorf("undone it is %q", now)
	}
}

// After another admin has changed the labels file and this link's answer has changed, an undo removes the level of the
// first answer, too, and keeps the other admin's label.
func TestVerifyAnUndoRemovesTheLevelOfAnEarlierAnswer(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t, "")
	before := labelsText(t, box)
	doing(t, box, nil, "profile-labels")
	writeLabels(t, box, labelsText(t, box)+"team: \"b\"\n")
	box.Run(
		t, clustertest.Local, "", "label", "--overwrite", "namespace", "alice", "bob",
		"pod-security.kubernetes.io/enforce=privileged",
	)
	s := doing(t, box, map[string]any{"security.level": "privileged"}, "profile-labels")
	if now := labelsText(t, box); !strings.Contains(now, `enforce: "privileged"`) || strings.Contains(now, "baseline") {
		t.Errorf("it is %s", now)
	}
	stepstest.Undo(t, s)
	keepsAppended(t, box, before)
}

// An undo also removes the level from a file that someone has changed since, and keeps that change.
func TestVerifyAnUndoRemovesTheLevelFromAChangedFile(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t, "")
	before := labelsText(t, box)
	s := doing(t, box, nil, "profile-labels")
	writeLabels(t, box, labelsText(t, box)+"team: \"b\"\n")
	s.Forget()
	p := stepstest.Undo(t, s)
	said := false
	for _, a := range p.Actions {
		for _, item := range a.Change.Items {
			said = said || strings.Contains(item.Note, "undo restores only the settings that carrick set") &&
				!strings.Contains(item.Note, "restores data.") &&
				strings.Contains(item.Diff, "enforce") && !strings.Contains(item.Diff, "-team")
		}
	}
	if !said {
		t.Errorf("the plan does not show it: %+v", p.Actions)
	}
	keepsAppended(t, box, before)
}

func labelsText(t *testing.T, box *clustertest.Sandbox) string {
	t.Helper()
	return box.Run(
		t, clustertest.Local, "", "-n", "kubeflow", "get", "configmap", "namespace-labels-data-4df5t8mdgf", "-o",
		`jsonpath={.data.namespace-labels\.yaml}`,
	)
}

// writeLabels replaces Kubeflow's labels file, as another admin.
func writeLabels(t *testing.T, box *clustertest.Sandbox, text string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"namespace-labels.yaml": text}})
	if err != nil {
		t.Fatal(err)
	}
	box.Run(
		t, clustertest.Local, "", "-n", "kubeflow", "patch", "configmap", "namespace-labels-data-4df5t8mdgf",
		"--type=merge", "-p", string(patch),
	)
}

func keepsAppended(t *testing.T, box *clustertest.Sandbox, before string) {
	t.Helper()
	got := strings.TrimSpace(labelsText(t, box))
	if want := strings.TrimSpace(strings.TrimSpace(before) + "\nteam: \"b\""); got != want {
		t.Errorf("undone it is %q, want %q", got, want)
	}
}

// Running pods that violate the existing pod security level are reported, too, because they cannot
// start again.
func TestVerifyALevelThatStandsStopsNoPodThatRuns(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t, "privileged-pod")
	box.Run(
		t, clustertest.Local, "", "-n", "bob", "wait", "--for=jsonpath={.status.replicas}=1", "--timeout=300s",
		"deployment/collector",
	)
	for _, labels := range [][]string{{"enforce=baseline"}, {"enforce=baseline", "enforce-version=v1.36"}} {
		args := []string{"label", "--overwrite", "namespace", "bob"}
		for _, l := range labels {
			args = append(args, "pod-security.kubernetes.io/"+l)
		}
		box.Run(t, clustertest.Local, "", args...)
		s := stepstest.Open(t, box, vsphere.Guide(), assets, "parts", stepstest.Given(t, box, vsphere.Guide(), nil))
		if r := verdict(t, s, "level-warnings", steps.Warn); !strings.Contains(r.Found, "hostPath") {
			t.Errorf("%v: %s", labels, r.Found)
		}
	}
}

// A correct manual setup is recognized and stays unmanaged.
func TestVerifyWhatIsThereAsItShouldBeStays(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t, "by-hand")
	s := stepstest.Open(t, box, vsphere.Guide(), assets, "found", nil)
	found, err := s.Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range found {
		want := map[string]string{
			"mutation.method": "policy", "mutation.selector": "app.kubernetes.io/part-of=kubeflow-profile",
			"mutation.replaces": "[vsphere-policy]", "mutation.failure-policy": "Fail", "security.level": "baseline",
		}[a.Question.Key]
		if want != "" && asText(a.Value) != want {
			t.Errorf("%s is %v (%s)", a.Question.Key, a.Value, a.From)
		}
	}
	p, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"policy", "profile-labels"}})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Empty() || len(p.Actions) != 2 {
		t.Errorf("it would change %+v", p.Actions)
	}
	verdict(t, s, "policy-exists", steps.Pass)
	verdict(t, s, "labels-file", steps.Pass)
}
