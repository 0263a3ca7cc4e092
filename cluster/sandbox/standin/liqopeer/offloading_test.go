package liqopeer

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPhases(t *testing.T) {
	for _, c := range []struct {
		going               bool
		required, good, bad int
		want                string
	}{
		{false, 0, 0, 0, "NoClusterSelected"},
		{false, 2, 0, 0, "InProgress"},
		{false, 2, 1, 0, "InProgress"},
		{false, 2, 2, 0, "Ready"},
		{false, 2, 1, 1, "SomeFailed"},
		{false, 2, 0, 2, "AllFailed"},
		{true, 2, 2, 0, "Terminating"},
	} {
		if got := phaseOf(c.going, c.required, c.good, c.bad); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestPodsStayWhereTheStrategySaysSo(t *testing.T) {
	for strategy, want := range map[string]bool{"": true, "LocalAndRemote": true, "Remote": true, "Local": false} {
		if got := offloadsPods(&offloadingSpec{PodOffloadingStrategy: strategy}); got != want {
			t.Errorf("%q: %v", strategy, got)
		}
	}
}

func TestRemoteNames(t *testing.T) {
	for strategy, want := range map[string]string{
		"": "demo-milan", "DefaultName": "demo-milan", "EnforceSameName": "demo", "SelectedName": "far",
	} {
		o := &offloading{ObjectMeta: metav1.ObjectMeta{Namespace: "demo"}}
		o.Spec.NamespaceMappingStrategy, o.Spec.RemoteNamespaceName = strategy, "far"
		if got := remoteName(o, "milan"); got != want {
			t.Errorf("%s: %s", strategy, got)
		}
	}
}

func TestSelectors(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "rome", Labels: map[string]string{"city": "rome"}}}
	in := func(values ...string) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "city", Operator: corev1.NodeSelectorOpIn, Values: values}},
		}}}
	}
	for _, c := range []struct {
		selector *corev1.NodeSelector
		want     bool
	}{
		{&corev1.NodeSelector{}, true},
		{in("rome", "paris"), true},
		{in("paris"), false},
	} {
		if got, err := selects(c.selector, node); err != nil || got != c.want {
			t.Errorf("%v: %v %v", c.selector, got, err)
		}
	}
	wrong := in("rome")
	wrong.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
	if _, err := selects(wrong, node); err == nil {
		t.Error("Near is no operator")
	}
}

func TestConditionsKeepTheirTime(t *testing.T) {
	first := with(nil, condition{Type: "A", Status: "Accepted", Reason: "R"})
	first[0].LastTransitionTime = metav1.Unix(1, 0)
	same := with(first, condition{Type: "A", Status: "Accepted", Reason: "R", Message: "again"})
	if same[0].LastTransitionTime != metav1.Unix(1, 0) || same[0].Message != "again" || first[0].Message != "" {
		t.Errorf("%v %v", first, same)
	}
	other := with(same, condition{Type: "A", Status: "Denied", Reason: "R"})
	if other[0].LastTransitionTime == metav1.Unix(1, 0) || says(other, "A") != "Denied" || says(other, "B") != "" {
		t.Errorf("%v", other)
	}
}

func TestReplicasSayWhereTheyComeFrom(t *testing.T) {
	original := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "x/v1", "kind": "X", "spec": map[string]any{"a": "b"}},
	}
	original.SetName("rome")
	original.SetNamespace("here")
	original.SetLabels(map[string]string{replication: yes, destination: "rome", remoteClusterID: "rome"})
	original.SetAnnotations(map[string]string{createVirtualNode: yes})
	original.SetFinalizers([]string{resourceFinalizer})
	got := replica(original, "milan", "there")
	labels := got.GetLabels()
	if labels[replication] != "false" || labels[replicated] != yes || labels[origin] != "milan" ||
		labels[remoteClusterID] != "milan" || labels[destination] != "rome" {
		t.Errorf("%v", labels)
	}
	if got.GetNamespace() != "there" || len(got.GetFinalizers()) > 0 || got.GetAnnotations()[createVirtualNode] != yes {
		t.Errorf("%v", got.Object)
	}
	if original.GetLabels()[replication] != yes {
		t.Error("the original is changed")
	}
}

func TestModulesFollowTheFlags(t *testing.T) {
	d := &appsv1.Deployment{}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"--cluster-id=milan"}}}
	if got := modulesOf(flagsOf(d)); got != (enabled{true, true, true}) {
		t.Errorf("without flags: %v", got)
	}
	d.Spec.Template.Spec.Containers[0].Args = []string{
		"--networking-enabled=false", "--authentication-enabled=true", "--offloading-enabled=false",
	}
	if got := modulesOf(flagsOf(d)); got != (enabled{false, true, false}) {
		t.Errorf("with flags: %v", got)
	}
}

func TestShares(t *testing.T) {
	for some, want := range []string{"NotReady", "SomeNotReady", "Ready"} {
		if got := share(some, 2); got != want {
			t.Errorf("%d of 2: %s", some, got)
		}
	}
}
