package amalthea

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func parse(t *testing.T, text string) *session {
	t.Helper()
	s := &session{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// object returns a value as JSON.
func object(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestIngressOfASession(t *testing.T) {
	for name, row := range map[string]struct{ ingress, tls, path, url string }{
		"default certificate": {
			`"pathPrefix":"/s/a","useDefaultClusterTLSCert":true`, `[{}]`, "/s/a/", "https://x.org/s/a?token=b/",
		},
		"Secret": {
			`"pathPrefix":"/s/a/","tlsSecret":{"name":"cert"}`, `[{"hosts":["x.org"],"secretName":"cert"}]`, "/s/a/",
			"https://x.org/s/a?token=b/",
		},
		"none":    {`"pathPrefix":"/"`, `null`, "/", "http://x.org/s/a?token=b/"},
		"assumed": {`"assumeHttps":true`, `null`, "/", "https://x.org/s/a?token=b/"},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(
				t,
				`{"metadata":{"name":"a"},"spec":{"session":{"urlPath":"/s/a?token=b"},"ingress":{"host":"x.org",`+row.ingress+
					`}}}`,
			)
			spec := s.ingress().Spec
			at := spec.Rules[0].HTTP.Paths[0]
			if got := object(t, spec.TLS); got != row.tls || at.Path != row.path ||
				at.Backend.Service.Port.Name != "amalthea-http" {
				t.Errorf("tls %s, %v", got, at)
			}
			if got := s.url(installed{}); got != row.url {
				t.Errorf("url %s", got)
			}
		})
	}
	if got := parse(t, `{}`).url(installed{https: true}); got != "None" {
		t.Errorf("a session without an Ingress is at %s", got)
	}
}

func TestServiceLeadsToTheProxyOrTheSession(t *testing.T) {
	for text, want := range map[string]struct {
		target     int32
		containers int
	}{
		`{}`:                                  {8000, 1},
		`{"session":{"port":9000}}`:           {9000, 1},
		`{"authentication":{"type":"x"}}`:     {65535, 3},
		`{"authentication":{"type":"token"}}`: {65535, 2},
		`{"authentication":{"enabled":false,"type":"x"}}`: {8000, 1},
	} {
		s := parse(t, `{"metadata":{"name":"a"},"spec":`+text+`}`)
		pod := s.statefulSet(installed{sidecars: "sidecars:1"}).Spec.Template.Spec
		if got := s.service().Spec.Ports[0].TargetPort.IntVal; got != want.target || len(pod.Containers) != want.containers {
			t.Errorf("%s: port %d, %d containers", text, got, len(pod.Containers))
		}
		if *pod.AutomountServiceAccountToken || *pod.SecurityContext.FSGroup != 1000 ||
			pod.Containers[0].SecurityContext.SeccompProfile != nil {
			t.Errorf("%s: %s", text, object(t, pod))
		}
	}
}

func TestStateOfASession(t *testing.T) {
	yes := true
	pod := func(phase corev1.PodPhase, c corev1.PodCondition, state corev1.ContainerState) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{
			Phase: phase, Conditions: []corev1.PodCondition{c},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "amalthea-session", State: state, Started: &yes, Ready: state.Running != nil},
			},
		}}
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, row := range map[string]struct {
		pod   *corev1.Pod
		state string
		error bool
		ready int64
	}{
		"no pod":  {nil, notReady, false, 0},
		"running": {pod(corev1.PodRunning, ready, runs), running, false, 1},
		"pending": {pod(corev1.PodPending, ready, runs), notReady, false, 1},
		"pulling": {
			pod(
				corev1.PodPending, corev1.PodCondition{},
				corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
			),
			notReady, false, 0,
		},
		"no image": {
			pod(
				corev1.PodPending, corev1.PodCondition{},
				corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
			),
			failed, true, 0,
		},
		"crashed": {
			pod(
				corev1.PodRunning, corev1.PodCondition{},
				corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
			),
			failed, true, 0,
		},
		"unschedulable": {&corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "no nodes",
			},
		}}}, notReady, true, 0},
	} {
		now := parse(t, `{}`).fares(installed{}, row.pod)
		if now.State != row.state || (now.Error != "") != row.error || now.ContainerCounts.Ready != row.ready {
			t.Errorf("%s: %s", name, object(t, now))
		}
	}
}

func TestWhichNamespacesAnOperatorWatches(t *testing.T) {
	for name, row := range map[string]struct {
		env  []corev1.EnvVar
		want installed
	}{
		"nothing": {nil, installed{namespace: "default", sidecars: "renku/sidecars:latest"}},
		"one": {
			[]corev1.EnvVar{{Name: "RELEASE_NAMESPACE", Value: "x"}, {Name: "SIDECARS_IMAGE", Value: "s"}},
			installed{namespace: "x", sidecars: "s"},
		},
		"all": {[]corev1.EnvVar{
			{Name: "CLUSTER_SCOPED", Value: "true"},
			{Name: "RELEASE_NAMESPACE", Value: "x"},
			{Name: "HTTPS_SESSION_INGRESS", Value: "True"},
		}, installed{https: true, sidecars: "renku/sidecars:latest"}},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere"}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Env: row.env}}
		if got, runs := read(d); got != row.want || runs {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
