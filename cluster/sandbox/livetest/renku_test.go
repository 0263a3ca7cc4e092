package livetest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// seed seeds the scenario renku in the shared sandbox, with a fault unless fault is "". The sandbox is reset when the
// test ends.
func seed(t *testing.T, fault string) {
	t.Helper()
	t.Cleanup(func() { shared.must(t, "reset") })
	shared.must(t, strings.TrimSpace("seed renku "+fault))
}

// versions returns the resource versions of a scenario's objects on a side, by kind and name.
func versions(t *testing.T, side string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, r := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "secrets"},
		{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "namespaces"},
		{Version: "v1", Resource: "nodes"},
		{Version: "v1", Resource: "pods"},
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "apps", Version: "v1", Resource: "daemonsets"},
		{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"},
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	} {
		list, err := shared.dynamic(t, side).Resource(r).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			found[r.Resource+" "+o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
		}
	}
	return found
}

func TestSecondSeedChangesNothing(t *testing.T) {
	for _, fault := range []string{"", "page"} {
		t.Run("fault "+fault, func(t *testing.T) {
			seed(t, fault)
			before := map[string]map[string]string{}
			for _, side := range []string{"local", "remote"} {
				eventually(t, happens, func() error { // controllers have their say after it stands
					first, second := versions(t, side), versions(t, side)
					before[side] = second
					if fmt.Sprint(first) != fmt.Sprint(second) {
						return errors.New("it still changes")
					}
					return nil
				})
			}
			shared.must(t, "seed renku")
			for side, was := range before {
				now := versions(t, side)
				for name, version := range now {
					if was[name] != version {
						t.Errorf("%s: %s is now %s, was %q", side, name, version, was[name])
					}
				}
				if len(now) != len(was) {
					t.Errorf("%s: %d objects, were %d", side, len(now), len(was))
				}
			}
		})
	}
}

func TestLogsComeThroughTheAPIServer(t *testing.T) {
	seed(t, "")
	client := shared.client(t, "local")
	lines := int64(1)
	said := func(namespace, selector string) string {
		pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil || len(pods.Items) == 0 {
			t.Fatalf("pods: %v %v", pods, err)
		}
		log, err := client.CoreV1().Pods(namespace).
			GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(log), "\n"); n > 1 {
			t.Errorf("%d lines were asked for 1", n)
		}
		return string(log)
	}
	const nothing = "stand-in: nothing runs in this pod\n"
	if got := said("kube-system", "k8s-app=kube-dns"); got != nothing {
		t.Errorf("DNS: %q", got)
	}
	for _, app := range []string{"data-service", "k8s-watcher", "data-tasks", "secrets-storage"} {
		if got := said("renku", "app=renku-"+app); got == nothing || got == "" {
			t.Errorf("%s: nobody speaks for it: %q", app, got)
		}
	}
}

// TestJobThatAsksIsAnswered verifies that the log of a Job that sends a request to the other side's API server contains
// the response.
func TestJobThatAsksIsAnswered(t *testing.T) {
	seed(t, "")
	client, there := shared.client(t, "local"), shared.config(t, "remote")
	authority := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "ask"}, Data: map[string]string{"ca.crt": string(there.CAData)},
	}
	volume := corev1.Volume{Name: "ca"}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: authority.Name},
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "ask"}}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "ask", Image: "registry.invalid/kubectl",
			Command: []string{
				"kubectl", "get", "--raw", "/version", "--server=" + there.Host, "--certificate-authority=/ca/ca.crt",
				"--username=anonymous", "--password=none",
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "ca", MountPath: "/ca"}},
		}},
		Volumes: []corev1.Volume{volume},
	}
	_, err1 := client.CoreV1().ConfigMaps("renku").Create(t.Context(), authority, metav1.CreateOptions{})
	_, err2 := client.BatchV1().Jobs("renku").Create(t.Context(), job, metav1.CreateOptions{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		pods, err := client.CoreV1().Pods("renku").List(
			t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=ask"},
		)
		if err != nil || len(pods.Items) == 0 || pods.Items[0].Spec.NodeName == "" {
			return fmt.Errorf("no pod runs yet: %w", err)
		}
		log, err := client.CoreV1().Pods("renku").GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err == nil && !strings.Contains(string(log), `"gitVersion": "v1.37.2"`) {
			t.Fatalf("the log: %s", log)
		}
		return err
	})
}

func TestKubeconfigsSecretHoldsAnotherCluster(t *testing.T) {
	seed(t, "")
	secret, err := shared.client(t, "local").CoreV1().Secrets("renku").Get(
		t.Context(), "renku-remote-clusters", metav1.GetOptions{},
	)
	if err != nil || len(secret.Data) != 1 ||
		!strings.Contains(string(secret.Data["paris.yaml"]), "server: https://192.0.2.10:6443") {
		t.Errorf("%v %v", secret, err)
	}
}

func TestChartRepositoryIsTheOneOfTheRelease(t *testing.T) {
	seed(t, "")
	release, err := shared.client(t, "local").CoreV1().Secrets("renku").Get(
		t.Context(), "sh.helm.release.v1.renku.v1", metav1.GetOptions{},
	)
	if err != nil || release.Type != "helm.sh/release.v1" || release.Labels["owner"] != "helm" ||
		release.Labels["status"] != "deployed" {
		t.Fatalf("%v %v", release, err)
	}
	url := repository(t, release)
	answer, err := http.Get(url + "/index.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	index, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(index), "amalthea-sessions-0.31.0.tgz") {
		t.Errorf("index: %s %v", index, err)
	}
	shared.must(t, "reset")
	if answer, err := http.Get(url + "/index.yaml"); err == nil {
		answer.Body.Close()
		t.Error("the repository outlives the reset")
	}
}

// repository returns the repository of a release's dependencies.
func repository(t *testing.T, release *corev1.Secret) string {
	t.Helper()
	var decoded struct {
		Chart struct {
			Metadata struct {
				Dependencies []struct{ Repository string }
			}
		}
	}
	if err := json.Unmarshal(unzip(t, release.Data["release"]), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded.Chart.Metadata.Dependencies[0].Repository
}

// unzip decodes the content of a Helm release Secret.
func unzip(t *testing.T, packed []byte) []byte {
	t.Helper()
	decoded, err := base64.StdEncoding.DecodeString(string(packed))
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(decoded))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
