package extension

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(command []string, args ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "first", Image: "registry.example.com/x"},
		{
			Name: "extension", Command: command, Args: args,
			VolumeMounts: []corev1.VolumeMount{{Name: "c", MountPath: "/certificate"}, {Name: "token", MountPath: accountAt}},
		},
	}}}
}

func TestWhichPodsArePlayed(t *testing.T) {
	for _, c := range []struct {
		situation string
		pod       *corev1.Pod
		want      bool
	}{
		{"the image's own command", pod(nil, "vsphere-extension", "--class=x"), true},
		{"carrick by its path", pod([]string{"/carrick"}, "vsphere-extension"), true},
		{"another command", pod([]string{"/bin/sh"}, "vsphere-extension"), false},
		{"another program of carrick", pod(nil, "check"), false},
		{"no arguments", pod(nil), false},
	} {
		if got := played(c.pod); (got != nil) != c.want || got != nil && got.Name != "extension" {
			t.Errorf("%s: %v", c.situation, got)
		}
	}
}

func TestFlagsSayWhatIsTrueHere(t *testing.T) {
	i := &instance{dir: "/pods/1", ports: map[int]string{}}
	c := &pod(nil, "vsphere-extension", "--class=a/b", "--bind-address", ":9443",
		"--health-probe-bind-address=0.0.0.0:8081", "--cert-dir=/certificate", "--other", "/certificates",
		"--leader-elect-resource-name=a/b").Spec.Containers[1]
	args, err := i.arguments(c)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"vsphere-extension", "--class=a/b", "--bind-address", i.ports[9443],
		"--health-probe-bind-address=" + i.ports[8081], "--cert-dir=/pods/1/root/certificate",
		"--other", "/certificates", "--leader-elect-resource-name=a/b", "--kubeconfig=/pods/1/kubeconfig",
	}
	if !slices.Equal(args, want) {
		t.Errorf("%v\nwant\n%v", args, want)
	}
	for port, at := range i.ports {
		if host, _, err := net.SplitHostPort(at); err != nil || host != "127.0.0.1" {
			t.Errorf("port %d is at %s", port, at)
		}
	}
	// Without its flags it would listen at all addresses of this machine.
	bare, err := i.arguments(&corev1.Container{Args: []string{command}})
	if err != nil || !slices.Contains(bare, "--bind-address="+i.ports[8443]) ||
		!slices.Contains(bare, "--health-probe-bind-address="+i.ports[8081]) ||
		strings.Contains(strings.Join(bare, " "), "--kubeconfig") {
		t.Errorf("%v, %v", bare, err)
	}
}

func TestAProgramThatEndsWaitsLongerAndLonger(t *testing.T) {
	i := &instance{dir: t.TempDir(), container: "extension", pod: "p_ns(uid)", ports: map[int]string{}}
	for n, want := range []time.Duration{firstBackOff, 2 * firstBackOff} {
		if err := i.start("/bin/sh", []string{"-c", "echo ended; exit 3"}, nil); err != nil {
			t.Fatal(err)
		}
		<-i.ended
		if i.backOff != want || i.due() || i.running() {
			t.Errorf("after %d ends it waits for %s", n+1, i.backOff)
		}
		r := i.report(t.Context(), &corev1.Container{})
		if message := fmt.Sprintf(
			"back-off %s restarting failed container=extension pod=p_ns(uid)", want,
		); r.State.Waiting.Message != message {
			t.Errorf("it says %q, want %q", r.State.Waiting.Message, message)
		}
		if r.Ready || r.State.Waiting.Reason != "CrashLoopBackOff" || r.Last.Terminated.ExitCode != 3 ||
			r.Restarts != int32(n) {
			t.Errorf("%+v", r)
		}
	}
	if i.log() != "ended\nended\n" {
		t.Errorf("it says %q", i.log())
	}
}

func TestAProgramIsToldToEndBeforeItIsKilled(t *testing.T) {
	i := &instance{dir: t.TempDir(), ports: map[int]string{}}
	if err := i.start(
		"/bin/sh", []string{"-c", "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.05; done"},
		[]string{"PATH=/usr/bin:/bin"},
	); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); i.log() == "" && time.Now().Before(deadline); {
		<-time.After(10 * time.Millisecond)
	}
	i.stop(t.Context())
	if i.running() || i.log() != "ready\ntold\n" {
		t.Errorf("it says %q", i.log())
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	t.Setenv(Variable, filepath.Join(t.TempDir(), "none"))
	if name, ok := Find(); ok {
		t.Errorf("found %s", name)
	}
	t.Setenv(Variable, "sh") // no path: whatever PATH finds is not meant
	if name, ok := Find(); ok && !filepath.IsAbs(name) {
		t.Errorf("found %s", name)
	}
	i := &instance{missing: true}
	if !strings.Contains(i.log(), Variable) || i.without().State.Waiting == nil {
		t.Errorf("%s", i.log())
	}
}

func TestImagesThatNobodyHas(t *testing.T) {
	for image, want := range map[string]bool{
		"keeyzar/vsphere-extensions-jvm": true, "docker.io/keeyzar/vsphere-extensions-jvm:latest": true,
		"registry.access.redhat.com/redhat-sso-7/sso71-openshift:1.1-16": true,
		"registry.example.com/mirror/vsphere-extensions:2020-11":         false, "registry.example.com/carrick:1.0": false,
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
		if got := imageOf(p) != ""; got != want {
			t.Errorf("%s: %v", image, got)
		}
	}
}
