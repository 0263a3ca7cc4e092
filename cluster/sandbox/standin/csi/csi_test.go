package csi

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func plugin(node, folder string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "plugin-" + node, Namespace: "csi", Labels: map[string]string{"app": "csi-nodeplugin-rclone"},
		},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{
				{Args: []string{"--kubelet-registration-path=" + folder + "/plugins/csi-rclone/csi.sock"}},
			},
			Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder + "/plugins_registry"}}},
			},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// drivers calls Look once and returns the drivers in a node's CSINode.
func drivers(t *testing.T, d *Driver, node string) []string {
	t.Helper()
	if err := d.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := d.client.StorageV1().CSINodes().Get(t.Context(), node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range found.Spec.Drivers {
		names = append(names, entry.Name)
	}
	return names
}

func TestOnlyAReadyPluginIsListed(t *testing.T) {
	client := fake.NewClientset(
		node("ready"), node("starting"), node("elsewhere"), node("bare"),
		plugin("ready", "/var/lib/kubelet", corev1.ConditionTrue),
		plugin("starting", "/var/lib/kubelet", corev1.ConditionFalse),
		plugin("elsewhere", "/var/lib/k0s/kubelet", corev1.ConditionTrue),
	)
	d := &Driver{client: client, known: map[string]bool{}}
	for name, want := range map[string][]string{"ready": {"csi-rclone"}, "starting": nil, "elsewhere": nil, "bare": nil} {
		if got := drivers(t, d, name); !slices.Equal(got, want) {
			t.Errorf("%s lists %v", name, got)
		}
	}
	unready := plugin("ready", "/var/lib/kubelet", corev1.ConditionFalse)
	if _, err := client.CoreV1().Pods("csi").UpdateStatus(t.Context(), unready, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := drivers(t, d, "ready"); !slices.Equal(got, []string{"csi-rclone"}) {
		t.Errorf("with a plugin that is no longer ready it lists %v", got)
	}
	if err := client.CoreV1().Pods("csi").Delete(t.Context(), "plugin-ready", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := drivers(t, d, "ready"); got != nil {
		t.Errorf("without its plugin it still lists %v", got)
	}
}

func TestDriversOfOthersStay(t *testing.T) {
	client := fake.NewClientset(
		node("a"), plugin("a", "/var/lib/kubelet", corev1.ConditionTrue),
		&storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "disk.example.org", NodeID: "a"}}},
		},
	)
	d := &Driver{client: client, known: map[string]bool{}}
	if got := drivers(t, d, "a"); !slices.Equal(got, []string{"disk.example.org", "csi-rclone"}) {
		t.Errorf("lists %v", got)
	}
	if err := client.CoreV1().Pods("csi").Delete(t.Context(), "plugin-a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := drivers(t, d, "a"); !slices.Equal(got, []string{"disk.example.org"}) {
		t.Errorf("lists %v", got)
	}
}
