package livetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

func TestEveryFaultCanBeSeeded(t *testing.T) {
	faults := map[string]string{}
	for _, f := range shared.ask(t, "faults renku").Faults {
		faults[f.Name] = f.Title
	}
	want := []string{
		"helm-value-missing", "crd-drift", "operator-version", "quota-left-behind", "cpu-quota", "restricted",
		"driver-missing-on-node", "page", "page-frames", "login-by-hand",
	}
	for _, name := range want {
		if faults[name] == "" {
			t.Errorf("there is no fault %s", name)
		}
	}
	if len(faults) <= len(want) {
		t.Errorf("no behaviour is among the faults: %v", faults)
	}
	for name := range faults {
		t.Run(name, func(t *testing.T) {
			seed(t, name)
			if look := shown[name]; look != nil {
				look(t, shared.client(t, "local"), shared.client(t, "remote"))
			}
		})
	}
	for _, command := range []string{
		"seed renku nothing", "seed renku ../base", "seed renku a b", "faults", "faults nothing",
	} {
		if ok, fault := shared.tell(t, command); ok || fault == "" {
			t.Errorf("%q: %v %q", command, ok, fault)
		}
	}
}

const space = "renku-user-sessions"

// shown maps each fault to a check that the fault has its effect.
var shown = map[string]func(t *testing.T, local, remote kubernetes.Interface){
	"helm-value-missing": func(t *testing.T, local, _ kubernetes.Interface) {
		list, err := local.AppsV1().Deployments("renku").List(t.Context(), metav1.ListOptions{LabelSelector: "release=renku"})
		if err != nil || len(list.Items) != 4 {
			t.Fatalf("%v %v", list, err)
		}
		for _, d := range list.Items {
			if len(d.Spec.Template.Spec.Volumes) != 0 {
				t.Errorf("%s has volumes", d.Name)
			}
		}
	},
	"quota-left-behind": func(t *testing.T, _, remote kubernetes.Interface) {
		if _, err := remote.CoreV1().ResourceQuotas(space).Get(t.Context(), "demo-pool", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	},
	"cpu-quota":  refusesPod("must specify limits.cpu"),
	"restricted": refusesPod("violates PodSecurity"),
	"crd-drift": func(t *testing.T, local, remote kubernetes.Interface) {
		if a, b := operator(t, local), operator(t, remote); a != b {
			t.Errorf("operators: %s, %s", a, b)
		}
		if definition(t, "local") == definition(t, "remote") {
			t.Error("the definitions are the same")
		}
	},
	"operator-version": func(t *testing.T, local, remote kubernetes.Interface) {
		if a, b := operator(t, local), operator(t, remote); a != "amalthea-sessions-0.30.2" ||
			b != "amalthea-sessions-0.31.0" {
			t.Errorf("operators: %s, %s", a, b)
		}
	},
	"driver-missing-on-node": func(t *testing.T, _, remote kubernetes.Interface) {
		nodes, err := remote.StorageV1().CSINodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 1 || nodes.Items[0].Name != "remote-worker-1" ||
			nodes.Items[0].Spec.Drivers[0].Name != "csi-rclone" {
			t.Errorf("%v %v", nodes, err)
		}
	},
	"page": followedPage,
}

func refusesPod(why string) func(*testing.T, kubernetes.Interface, kubernetes.Interface) {
	return func(t *testing.T, _, remote kubernetes.Interface) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "session"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.invalid/x"}}},
		}
		eventually(t, happens, func() error { // the quota counts before it refuses in these words
			_, err := remote.CoreV1().Pods(space).Create(
				t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}},
			)
			if err == nil || !strings.Contains(err.Error(), why) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	}
}

func operator(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	list, err := client.AppsV1().Deployments("").List(
		t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=amalthea-sessions"},
	)
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	return list.Items[0].Labels["helm.sh/chart"]
}

func definition(t *testing.T, side string) string {
	t.Helper()
	crds := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	crd, err := shared.dynamic(t, side).Resource(crds).Get(
		t.Context(), "amaltheasessions.amalthea.dev", metav1.GetOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(crd.Object["spec"])
}

func followedPage(t *testing.T, local, remote kubernetes.Interface) {
	secret, err := local.CoreV1().Secrets("renku").Get(t.Context(), "renku-remote-clusters", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := string(secret.Data["remote-cluster.yaml"])
	if !strings.Contains(kubeconfig, "remote-cluster-A") || strings.Contains(kubeconfig, "current-context") ||
		len(secret.Data) != 2 {
		t.Errorf("the Secret has %d keys, the kubeconfig %d characters", len(secret.Data), len(kubeconfig))
	}
	var parsed struct {
		Users []struct{ User struct{ Token string } }
	}
	if err := json.Unmarshal([]byte(kubeconfig), &parsed); err != nil {
		t.Fatal(err)
	}
	theirs := as(t, shared.config(t, "remote"), parsed.Users[0].User.Token)
	if _, err := theirs.CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the page's own test fails: %v", err)
	}
	if _, err := theirs.SchedulingV1().PriorityClasses().List(
		t.Context(), metav1.ListOptions{},
	); !apierrors.IsForbidden(err) {
		t.Errorf("it may list priority classes: %v", err)
	}
	policies, err := remote.NetworkingV1().NetworkPolicies(space).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(policies.Items) != 1 ||
		!slices.Equal(policies.Items[0].Spec.PolicyTypes, []networkingv1.PolicyType{"Egress"}) {
		t.Errorf("policies: %v %v", policies, err)
	}
	watched, err := local.AppsV1().Deployments("renku").Get(t.Context(), "renku-data-tasks", metav1.GetOptions{})
	if err != nil || len(watched.Spec.Template.Annotations) != 0 {
		t.Errorf("data-tasks was restarted, which the page forgets: %v", err)
	}
}
