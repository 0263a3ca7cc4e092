package chart

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWhyAPodDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct{ status, want string }{
		"fine":    {`containerStatuses: [{name: c, state: {running: {}}}]`, ""},
		"starts":  {`containerStatuses: [{name: c, state: {waiting: {reason: ContainerCreating}}}]`, ""},
		"is done": {`containerStatuses: [{name: c, state: {terminated: {exitCode: 0}}}]`, ""},
		"image": {
			`containerStatuses: [{name: c, image: x/y, state: {waiting: {reason: ImagePullBackOff, message: no such host}}}]`,
			"image x/y cannot be pulled (ImagePullBackOff): no such host",
		},
		"crash": {
			`containerStatuses: [{name: c, restartCount: 4, lastState: {terminated: {exitCode: 137}}, state: {waiting: {reason: CrashLoopBackOff}}}]`,
			"container c crashes repeatedly (4 times, last exit code 137): kubectl -n ns logs p -c c --previous",
		},
		"config": {
			`initContainerStatuses: [{name: i, state: {waiting: {reason: CreateContainerConfigError, message: secret "s" not found}}}]`,
			`container i cannot start (CreateContainerConfigError): secret "s" not found`,
		},
		"ended": {
			`initContainerStatuses: [{name: i, state: {terminated: {exitCode: 2}}}]`,
			"container i exited with code 2: kubectl -n ns logs p -c i",
		},
		"nowhere": {
			`conditions: [{type: PodScheduled, status: "False", message: "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: none"}]`,
			"pod p cannot be scheduled: 0/2 nodes are available: 2 Insufficient cpu",
		},
		"escapes": {
			`containerStatuses: [{name: c, image: x, state: {waiting: {reason: ErrImagePull, message: "a\u001b[2Jb"}}}]`,
			"image x cannot be pulled (ErrImagePull): ab",
		},
	} {
		p := object(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ns}\nstatus: {"+c.status+"}")
		if got := strings.Join(podReasons(p), "; "); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWhereAWorkloadStands(t *testing.T) {
	for name, c := range map[string]struct {
		text         string
		done, failed bool
		want         string
	}{
		"made": {
			"kind: Deployment\napiVersion: apps/v1\nmetadata: {name: d, namespace: ns, generation: 1}\nspec: {replicas: 2}",
			false, false, "Deployment ns/d: 0 of 2 ready",
		},
		"ready": {
			"kind: DaemonSet\napiVersion: apps/v1\nmetadata: {name: d, namespace: ns, generation: 1}\nstatus: " +
				"{observedGeneration: 1, desiredNumberScheduled: 1, currentNumberScheduled: 1, updatedNumberScheduled: 1, " +
				"numberAvailable: 1, numberReady: 1}",
			true, false, "DaemonSet ns/d: 1 of 1 ready",
		},
		"plain": {"kind: ConfigMap\napiVersion: v1\nmetadata: {name: c, namespace: ns}", true, false, ""},
		"failed": {
			"kind: Deployment\napiVersion: apps/v1\nmetadata: {name: d, namespace: ns, generation: 1}\nspec: {replicas: " +
				"1}\nstatus: {observedGeneration: 1, conditions: [{type: Progressing, status: \"False\", reason: " +
				"ProgressDeadlineExceeded}]}",
			false, true, "Deployment ns/d: 0 of 1 ready",
		},
	} {
		s := readiness(object(t, c.text))
		if s.done != c.done || s.failed != c.failed || !strings.HasPrefix(s.words, c.want) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	job := func(condition string) state {
		return completion(object(
			t, "kind: Job\napiVersion: batch/v1\nmetadata: {name: j, namespace: ns}\nstatus: {conditions: ["+condition+"]}",
		))
	}
	if s := job(`{type: Complete, status: "True"}`); !s.done || s.failed {
		t.Errorf("%+v", s)
	}
	if s := job(`{type: Failed, status: "True", message: too often}`); s.done || !s.failed ||
		!strings.Contains(s.words, "too often") {
		t.Errorf("%+v", s)
	}
	if s := job(""); s.done || s.failed {
		t.Errorf("%+v", s)
	}
}
