package rawget

import (
	"encoding/json"
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

	"carrick/cluster/sandbox/pki"
)

func pod(name, server string, more ...string) *corev1.Pod {
	command := append(
		[]string{
			"kubectl", "get", "--raw", "/version", "--server=" + server, "--certificate-authority=/ca/ca.crt",
			"--username=anonymous", "--password=none",
		},
		more...,
	)
	volume := corev1.Volume{Name: "ca"}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "x", UID: types.UID(name)},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{
				{Name: "ask", Command: command, VolumeMounts: []corev1.VolumeMount{{Name: "ca", MountPath: "/ca"}}},
			},
			Volumes: []corev1.Volume{volume},
		},
	}
}

func holding(name, authority string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "x"}, Data: map[string]string{"ca.crt": authority},
	}
}

// stranger returns the certificate of a CA that has not signed the server's certificate.
func stranger(t *testing.T) string {
	t.Helper()
	authority, err := pki.NewAuthority("stranger")
	if err != nil {
		t.Fatal(err)
	}
	return string(authority.Cert)
}

func TestItReallyAsks(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		refused := func(code int, reason metav1.StatusReason, message string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Code: int32(code), Reason: reason, Message: message,
			})
		}
		switch r.URL.Path {
		case "/version":
			_, _ = io.WriteString(w, `{"gitVersion":"v1"}`)
		case "/unauthorized":
			refused(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
		case "/forbidden":
			refused(
				http.StatusForbidden, metav1.StatusReasonForbidden,
				`forbidden: User "system:anonymous" cannot get path "/forbidden"`,
			)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	other := httptest.NewTLSServer(nil)
	other.Close() // nobody listens there any more
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	at := func(path string) *corev1.Pod {
		p := pod(strings.TrimPrefix(path, "/"), server.URL)
		p.Spec.Containers[0].Command[3] = path
		return p
	}
	nobody := pod("nobody", server.URL)
	nobody.Spec.Containers[0].Command = nobody.Spec.Containers[0].Command[:6]
	a := &Asker{said: map[types.UID]string{}, client: fake.NewClientset(
		pod("good", server.URL, "--request-timeout=2s"), holding("good", authority),
		pod("gone", other.URL), holding("gone", authority),
		pod("no-certificate", server.URL), holding("no-certificate", "none"),
		pod("no-map", server.URL),
		at("/nothing"), holding("nothing", authority),
		at("/unauthorized"), holding("unauthorized", authority),
		at("/forbidden"), holding("forbidden", authority),
		pod("stranger", server.URL), holding("stranger", stranger(t)),
		pod("no-key", server.URL), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "no-key", Namespace: "x"}},
		pod("another-flag", server.URL, "--insecure-skip-tls-verify=true"), holding("another-flag", authority),
		nobody, holding("nobody", authority),
		pod("plain", "http://127.0.0.1:1"), holding("plain", authority),
	)}
	for name, want := range map[string]string{
		"good":           `{"gitVersion":"v1"}`,
		"nobody":         "Please enter Username: error: EOF\n",
		"gone":           "The connection to the server " + strings.TrimPrefix(other.URL, "https://") + " was refused",
		"stranger":       "Unable to connect to the server: tls: failed to verify certificate: x509: ",
		"no-certificate": "error: unable to load root certificates: ",
		"no-map":         `error: stand-in: the container does not start: configmaps "no-map" not found`,
		"no-key":         "Error in configuration: unable to read certificate-authority /ca/ca.crt",
		"nothing":        "Error from server (NotFound): the server could not find the requested resource",
		"unauthorized":   "error: You must be logged in to the server (Unauthorized)\n",
		"forbidden":      `Error from server (Forbidden): forbidden: User "system:anonymous" cannot get path "/forbidden"`,
	} {
		if said, ok := a.Log("x", name, "ask"); !ok || !strings.HasPrefix(said, want) {
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
