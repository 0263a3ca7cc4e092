package virtualkubelet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const certificate = "-----BEGIN CERTIFICATE-----\nMIIB\nAAAA\n-----END CERTIFICATE-----"

func TestConfigurationIsReadAsUpstreamReadsIt(t *testing.T) {
	for _, c := range []struct {
		situation, text string
		want            config
		fails           string
	}{
		{"both are there", "KubernetesApiAddr: \"192.0.2.1\"\nKubernetesApiPort: \"60443\"\nOther: {x: 1}\n", config{Addr: "192.0.2.1", Port: "60443"}, ""},
		{"a port that is a number", "KubernetesApiAddr: a\nKubernetesApiPort: 60443\n", config{Addr: "a", Port: "60443"}, ""},
		{"a CA as it should be", "KubernetesApiCaCrt: |\n  " + strings.ReplaceAll(certificate, "\n", "\n  ") + "\n", config{CA: certificate + "\n"}, ""},
		{"a CA as the chart indents it", "A: 1\nKubernetesApiCaCrt: |\n        " + strings.ReplaceAll(certificate, "\n", "\n  ") + "\nExportPodData: false\n", config{}, "did not find expected key"},
		{"true and false", "DisableProjectedVolumes: true\nVerboseLogging: true\n", config{NoProjected: true, VerboseLogging: true}, ""},
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
		{"no command of an image that is another one", corev1.Container{Image: "busybox", Args: []string{"auth", "whoami"}}, false},
		{"a change", corev1.Container{Image: image, Command: []string{"kubectl", "delete", "pods", "--all"}}, false},
		{"another server", corev1.Container{Image: image, Command: []string{"kubectl", "get", "pods", "--server=https://192.0.2.1"}}, false},
		{"another credential", corev1.Container{Image: image, Command: []string{"kubectl", "get", "pods", "--kubeconfig", "/root/.kube/config"}}, false},
		{"one that does not end", corev1.Container{Image: image, Command: []string{"kubectl", "get", "pods", "-w"}}, false},
		{"nothing", corev1.Container{Image: image}, false},
	} {
		if _, got := command(c.container); got != c.want {
			t.Errorf("%s: %v", c.situation, got)
		}
	}
	for image, want := range map[string]bool{"docker.io/bitnami/kubectl": true, "bitnami/kubectl:1.29": true, "docker.io/bitnamilegacy/kubectl": false, image: false} {
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
	if text, err := os.ReadFile(at); err != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "tokenFile: "+filepath.Join(dir, "token")) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestLogOfADebugLevel(t *testing.T) {
	for _, verbose := range []bool{true, false} {
		r := &run{config: config{VerboseLogging: verbose}}
		r.say("debug", "could get token %s", "ey")
		if got := strings.Contains(r.log.String(), "could get token ey"); got != verbose {
			t.Errorf("verbose %v: %s", verbose, r.log.String())
		}
	}
}
