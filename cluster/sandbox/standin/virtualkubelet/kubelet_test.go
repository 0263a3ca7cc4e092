package virtualkubelet

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

const certificate = "-----BEGIN CERTIFICATE-----\nMIIB\nAAAA\n-----END CERTIFICATE-----"

func TestConfigurationIsReadAsUpstreamReadsIt(t *testing.T) {
	for _, c := range []struct {
		situation, text string
		want            config
		fails           string
	}{
		{
			"both are there", "KubernetesApiAddr: \"192.0.2.1\"\nKubernetesApiPort: \"60443\"\nOther: {x: 1}\n",
			config{Addr: "192.0.2.1", Port: "60443"},
			"",
		},
		{"a port that is a number", "KubernetesApiAddr: a\nKubernetesApiPort: 60443\n", config{Addr: "a", Port: "60443"}, ""},
		{
			"a CA as it should be", "KubernetesApiCaCrt: |\n  " + strings.ReplaceAll(certificate, "\n", "\n  ") + "\n",
			config{CA: certificate + "\n"},
			"",
		},
		{
			"a CA as the chart indents it",
			"A: 1\nKubernetesApiCaCrt: |\n        " + strings.ReplaceAll(certificate, "\n", "\n  ") + "\nExportPodData: false\n",
			config{},
			"did not find expected key",
		},
		{
			"true and false", "DisableProjectedVolumes: true\nVerboseLogging: true\n",
			config{NoProjected: true, VerboseLogging: true},
			"",
		},
		{"a word for true", "DisableProjectedVolumes: sometimes\n", config{}, "cannot unmarshal"},
	} {
		got, err := parse(c.text)
		if c.fails == "" && (err != nil || got != c.want) {
			t.Errorf("%s: %+v, %v", c.situation, got, err)
		}
		if c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%s: %v, want %q", c.situation, err, c.fails)
		}
	}
}

func TestEnvironmentTakesBoth(t *testing.T) {
	for _, c := range []struct{ addr, port, server string }{
		{"192.0.2.1", "60443", "https://192.0.2.1:60443"},
		{"2001:db8::1", "443", "https://[2001:db8::1]:443"},
		{"192.0.2.1", "", ""},
		{"", "60443", ""},
		{"", "", ""},
	} {
		environment := config{Addr: c.addr, Port: c.port}.environment()
		if got := server(environment); got != c.server || (c.server != "") != (len(environment) == 8) {
			t.Errorf("%q %q: %q, %d variables", c.addr, c.port, got, len(environment))
		}
	}
}

func TestOnlyQuestionsArePlayed(t *testing.T) {
	const image = "registry.k8s.io/kubectl:v1.37.2"
	for _, c := range []struct {
		situation string
		container corev1.Container
		want      bool
	}{
		{"a command", corev1.Container{Image: image, Command: []string{"kubectl", "auth", "can-i", "--list"}}, true},
		{"the image's own command", corev1.Container{Image: image, Args: []string{"auth", "whoami"}}, true},
		{"another program", corev1.Container{Image: image, Command: []string{"sh", "-c", "kubectl auth whoami"}}, false},
		{
			"no command of an image that is another one",
			corev1.Container{Image: "busybox", Args: []string{"auth", "whoami"}},
			false,
		},
		{"a change", corev1.Container{Image: image, Command: []string{"kubectl", "delete", "pods", "--all"}}, false},
		{
			"another server",
			corev1.Container{Image: image, Command: []string{"kubectl", "get", "pods", "--server=https://192.0.2.1"}},
			false,
		},
		{
			"another credential",
			corev1.Container{Image: image, Command: []string{"kubectl", "get", "pods", "--kubeconfig", "/root/.kube/config"}},
			false,
		},
		{"one that does not end", corev1.Container{Image: image, Command: []string{"kubectl", "get", "pods", "-w"}}, false},
		{"nothing", corev1.Container{Image: image}, false},
	} {
		if _, got := command(c.container); got != c.want {
			t.Errorf("%s: %v", c.situation, got)
		}
	}
	for image, want := range map[string]bool{
		"docker.io/bitnami/kubectl": true, "bitnami/kubectl:1.29": true, "docker.io/bitnamilegacy/kubectl": false,
		image: false,
	} {
		if gone(image) != want {
			t.Errorf("%s: %v", image, !want)
		}
	}
}

func TestFilesOfAJobAreItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "job")
	if err := makeDir(dir); err != nil {
		t.Fatal(err)
	}
	at, err := kubeconfig(dir, "https://192.0.2.1:60443", "default", "secret", certificate)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{at, filepath.Join(dir, "token")} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if text, err := os.ReadFile(at); err != nil || strings.Contains(string(text), "secret") ||
		!strings.Contains(string(text), "tokenFile: "+filepath.Join(dir, "token")) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestLogLevels(t *testing.T) {
	for _, c := range []struct {
		situation string
		config    config
		want      []string
	}{
		{"neither", config{}, []string{"info", "warning", "error"}},
		{"verbose", config{VerboseLogging: true}, []string{"debug", "info", "warning", "error"}},
		{"errors only", config{ErrorsOnly: true}, []string{"error"}},
		{"both", config{VerboseLogging: true, ErrorsOnly: true}, []string{"debug", "info", "warning", "error"}},
	} {
		r := &run{config: c.config}
		for _, level := range []string{"debug", "info", "warning", "error"} {
			r.say(level, "a line")
			if got := strings.Contains(r.log.String(), "level="+level+" "); got != slices.Contains(c.want, level) {
				t.Errorf("%s: level %s is logged: %t", c.situation, level, got)
			}
		}
	}
}

func TestConfigMapFiles(t *testing.T) {
	client := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: rootCA, Namespace: "a"},
		Data:       map[string]string{"ca.crt": "cluster", "other": "text"},
	})
	items := func(key, path string) []corev1.KeyToPath { return []corev1.KeyToPath{{Key: key, Path: path}} }
	for _, c := range []struct {
		situation, ca, namespace string
		items                    []corev1.KeyToPath
		want                     map[string]string
		fails                    string
	}{
		{"the cluster's CA", "", "a", items("ca.crt", "ca.crt"), map[string]string{"ca.crt": "cluster"}, ""},
		{"all keys", "", "a", nil, map[string]string{"ca.crt": "cluster", "other": "text"}, ""},
		{"a key that does not exist", "", "a", items("none", "ca.crt"), nil, "it has no key none"},
		{"a ConfigMap that does not exist", "", "b", items("ca.crt", "ca.crt"), nil, "not found"},
		{"the CA of the configuration", "ours", "a", items("ca.crt", "own.crt"), map[string]string{"own.crt": "ours"}, ""},
		{"the CA of the configuration, no items", "ours", "a", nil, map[string]string{"ca.crt": "ours"}, ""},
		{
			"the CA of the configuration, no ConfigMap", "ours", "b", items("ca.crt", "ca.crt"),
			map[string]string{"ca.crt": "ours"},
			"",
		},
	} {
		source := &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: rootCA}, Items: c.items}
		got, err := configMap(t.Context(), client, c.namespace, source, &run{config: config{CA: c.ca}})
		if c.fails == "" && (err != nil || !maps.Equal(got, c.want)) {
			t.Errorf("%s: %v, %v", c.situation, got, err)
		}
		if c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%s: %v, want %q", c.situation, err, c.fails)
		}
	}
}

func TestStatusOfAJob(t *testing.T) {
	zero, one := int32(0), int32(1)
	for _, c := range []struct {
		situation string
		end       []*int32
		phase     corev1.PodPhase
		reason    string
		each      []string // reasons of the containers that ended
	}{
		{"all succeeded", []*int32{&zero, &zero}, corev1.PodSucceeded, "Completed", []string{"Completed", "Completed"}},
		{"one failed", []*int32{&one, &zero}, corev1.PodFailed, "Error: 1", []string{"Error: 1", "Error: 1"}},
		{"one failed and one runs", []*int32{&one, nil}, corev1.PodRunning, "Running", []string{"Error: 1", ""}},
	} {
		s := &corev1.PodStatus{Phase: corev1.PodPending}
		setStatus(s, []corev1.Container{{Name: "a"}, {Name: "b"}}, c.end)
		if s.Phase != c.phase || s.Reason != c.reason {
			t.Errorf("%s: %s, %q", c.situation, s.Phase, s.Reason)
		}
		for i, of := range s.ContainerStatuses {
			if ended := of.State.Terminated; c.each[i] == "" && ended != nil || c.each[i] != "" && ended.Reason != c.each[i] {
				t.Errorf("%s: container %s: %+v", c.situation, of.Name, of.State)
			}
		}
	}
}
