package endpoint

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientfake "k8s.io/client-go/kubernetes/fake"
)

// TestMountsFollowTheirSecret verifies that mounted files are updated with their Secret, all at once, and only where a
// kubelet updates them.
func TestMountsFollowTheirSecret(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "pair", Namespace: "n"},
		Data:       map[string][]byte{"tls.crt": []byte("old"), "tls.key": []byte("old")},
	}
	conf := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "conf", Namespace: "n"}, Data: map[string]string{confKey: "events {}"},
	}
	client := clientfake.NewClientset(secret, conf)
	p := &Player{client: client}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"}, Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{
			{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "pair"}}},
			{
				Name: "conf",
				VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}},
				},
			},
		},
		Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{
			{Name: "tls", MountPath: "/tls"},
			{Name: "tls", MountPath: "/one/tls.crt", SubPath: "tls.crt"},
			{Name: "conf", MountPath: "/conf"},
		}}},
	}}
	dir := t.TempDir()
	if _, _, _, err := p.mount(t.Context(), pod, dir); err != nil {
		t.Fatal(err)
	}
	holds := func(name, want string) {
		t.Helper()
		if have, err := os.ReadFile(filepath.Join(dir, "root", name)); err != nil || string(have) != want {
			t.Errorf("%s holds %q (%v), want %q", name, have, err, want)
		}
	}
	holds("tls/tls.crt", "old")
	secret.Data = map[string][]byte{"tls.crt": []byte("new"), "tls.key": []byte("new")}
	if _, err := client.CoreV1().Secrets("n").Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second time changes nothing
		if err := p.refresh(t.Context(), pod, dir); err != nil {
			t.Fatal(err)
		}
		holds("tls/tls.crt", "new")
		holds("tls/tls.key", "new")
		holds("one/tls.crt", "old") // subPath
	}
	// the folder of today, the link to it, two files
	if entries, _ := os.ReadDir(filepath.Join(dir, "root", "tls")); len(entries) != 4 {
		t.Errorf("left in the folder: %v", entries)
	}
	if err := client.CoreV1().Secrets("n").Delete(t.Context(), "pair", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.refresh(t.Context(), pod, dir); err != nil {
		t.Fatal(err)
	}
	holds("tls/tls.crt", "new")
}
