package rawget

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func pod(name, server string, more ...string) *corev1.Pod {
	command := append([]string{"kubectl", "get", "--raw", "/version", "--server=" + server, "--certificate-authority=/ca/ca.crt", "--username=anonymous", "--password=none"}, more...)
	volume := corev1.Volume{Name: "ca"}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "x", UID: types.UID(name)},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "ask", Command: command, VolumeMounts: []corev1.VolumeMount{{Name: "ca", MountPath: "/ca"}}}},
			Volumes:    []corev1.Volume{volume},
		},
	}
}

func holding(name, authority string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "x"}, Data: map[string]string{"ca.crt": authority}}
}

func TestItReallyAsks(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"gitVersion":"v1"}`)
	}))
	defer server.Close()
	other := httptest.NewTLSServer(nil)
	other.Close() // nobody listens there any more
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	elsewhere := pod("elsewhere", server.URL)
	elsewhere.Spec.Containers[0].Command[3] = "/nothing"
	nobody := pod("nobody", server.URL)
	nobody.Spec.Containers[0].Command = nobody.Spec.Containers[0].Command[:6]
	a := &Asker{said: map[types.UID]string{}, client: fake.NewClientset(
		pod("good", server.URL, "--request-timeout=2s"), holding("good", authority),
		pod("gone", other.URL), holding("gone", authority),
		pod("no-certificate", server.URL), holding("no-certificate", "none"),
		pod("no-map", server.URL),
		elsewhere, holding("elsewhere", authority),
		pod("another-flag", server.URL, "--insecure-skip-tls-verify=true"), holding("another-flag", authority),
		nobody, holding("nobody", authority),
		pod("plain", "http://127.0.0.1:1"), holding("plain", authority),
	)}
	for name, want := range map[string]string{
		"good":           `{"gitVersion":"v1"}`,
		"nobody":         "Please enter Username: error: EOF",
		"gone":           "unable to connect to the server",
		"no-certificate": "unable to load root certificates",
		"no-map":         `"no-map" not found`,
		"elsewhere":      "the server answered 404",
	} {
		said, ok := a.Log("x", name, "ask")
		if !ok || !strings.Contains(said, want) || (name != "good") != strings.Contains(said, "error: ") {
			t.Errorf("%s: %q %v", name, said, ok)
		}
	}
	before := asked
	if said, _ := a.Log("x", "good", "ask"); said != `{"gitVersion":"v1"}` || asked != before {
		t.Errorf("the log was asked for again: %q", said)
	}
	for _, name := range []string{"another-flag", "plain", "not-there"} {
		if said, ok := a.Log("x", name, "ask"); ok {
			t.Errorf("%s is played: %q", name, said)
		}
	}
	if said, ok := a.Log("x", "good", "sidecar"); ok {
		t.Errorf("another container is played: %q", said)
	}
}
