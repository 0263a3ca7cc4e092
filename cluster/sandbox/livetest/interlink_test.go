package livetest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	gateName = "k8s-api-proxy"
	gateCert = "web-ssl-kubernetes-api"
)

// joined is the running scenario interlink.
type joined struct {
	t      *testing.T
	client kubernetes.Interface
	edge   string
	at     string // the external address
	gate   string // external address of the manual set-up
}

// seedJoined seeds the scenario interlink in the shared sandbox, which is reset when the test ends.
func seedJoined(t *testing.T, fault string) *joined {
	t.Helper()
	t.Cleanup(func() { shared.must(t, "reset") })
	said := shared.ask(t, strings.TrimSpace("seed interlink "+fault))
	if !said.OK || said.Hosts["remote"] == "" || !said.Here["remote"] {
		t.Fatalf("seed interlink %s: %+v", fault, said)
	}
	j := &joined{t: t, client: shared.client(t, "local"), edge: said.Hosts["remote"], at: said.Answers["exposure.address"]}
	port := said.Answers["exposure.port"]
	if port == "" {
		port = "60443"
	}
	j.gate = net.JoinHostPort(j.at, port)
	return j
}

// ca returns the CA of the endpoint's certificate.
func (j *joined) ca() *x509.CertPool {
	j.t.Helper()
	held, err := j.client.CoreV1().Secrets("interlink-api").Get(j.t.Context(), gateCert, metav1.GetOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(held.Data["ca.crt"]) {
		j.t.Fatal("no ca.crt")
	}
	return pool
}

// get sends a request to the endpoint, with a token unless token is "".
func (j *joined) get(path, token string, roots *x509.CertPool) (*http.Response, string, error) {
	j.t.Helper()
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 10 * time.Second,
	}
	defer client.CloseIdleConnections()
	ask, err := http.NewRequestWithContext(j.t.Context(), http.MethodGet, "https://"+j.gate+path, nil)
	if err != nil {
		j.t.Fatal(err)
	}
	if token != "" {
		ask.Header.Set("Authorization", "Bearer "+token)
	}
	r, err := client.Do(ask)
	if err != nil {
		return nil, "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return r, string(body), err
}

// answers waits until the endpoint responds with status, and returns the response's body.
func (j *joined) answers(path, token string, status int) string {
	j.t.Helper()
	said := ""
	eventually(j.t, happens, func() error {
		r, body, err := j.get(path, token, j.ca())
		if err == nil && r.StatusCode != status {
			err = fmt.Errorf("%s: %s, want %d", path, r.Status, status)
		}
		said = body
		return err
	})
	return said
}

// token returns a new token of the ServiceAccount default/default.
func (j *joined) token() string {
	j.t.Helper()
	made, err := j.client.CoreV1().ServiceAccounts("default").CreateToken(
		j.t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{},
	)
	if err != nil {
		j.t.Fatal(err)
	}
	return made.Status.Token
}

// job runs a kubectl command on the virtual node. It returns the log, and reports whether the command succeeded.
func (j *joined) job(image string, args ...string) (said string, well bool) {
	j.t.Helper()
	pod := j.ran(image, args...)
	return j.log(pod.Namespace, pod.Name, "t"), pod.Status.Phase == corev1.PodSucceeded
}

// ran runs such a Job and returns its pod when the pod has ended.
func (j *joined) ran(image string, args ...string) *corev1.Pod {
	j.t.Helper()
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		NodeSelector:  map[string]string{"kubernetes.io/hostname": "virtual-node"},
		Tolerations:   []corev1.Toleration{{Key: "virtual-node.interlink/no-schedule", Operator: corev1.TolerationOpExists}},
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "t", Image: image, Command: append([]string{"kubectl"}, args...)}},
	}}
	job := &batchv1.Job{Spec: batchv1.JobSpec{BackoffLimit: new(int32), Template: corev1.PodTemplateSpec{Spec: pod.Spec}}}
	job.GenerateName = "asks-"
	made, err := j.client.BatchV1().Jobs("default").Create(j.t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	var ran *corev1.Pod
	eventually(j.t, happens, func() error {
		pods, err := j.client.CoreV1().Pods("default").List(
			j.t.Context(), metav1.ListOptions{LabelSelector: "job-name=" + made.Name},
		)
		if err != nil || len(pods.Items) == 0 {
			return fmt.Errorf("no pod: %w", err)
		}
		if ran = &pods.Items[0]; ran.Status.Phase != corev1.PodSucceeded && ran.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("it is %s: %v", ran.Status.Phase, ran.Status.Conditions)
		}
		return nil
	})
	return ran
}

func (j *joined) log(namespace, pod, container string) string {
	j.t.Helper()
	data, err := j.client.CoreV1().Pods(namespace).GetLogs(
		pod, &corev1.PodLogOptions{Container: container},
	).DoRaw(j.t.Context())
	if err != nil {
		j.t.Fatal(err)
	}
	return string(data)
}

const kubectlImage = "registry.k8s.io/kubectl:v1.37.2"

// who verifies the identity that a job on the virtual node has at the API server, and whether the job succeeds.
func (j *joined) who(want string, well bool) {
	j.t.Helper()
	said, ok := j.job(kubectlImage, "auth", "whoami")
	if ok != well || !strings.Contains(said, want) {
		j.t.Errorf("it went well: %v, want %v, and %q in:\n%s", ok, well, want, said)
	}
}

func (j *joined) read(name string) string {
	j.t.Helper()
	data, err := os.ReadFile(filepath.Join(j.edge, name))
	if err != nil {
		j.t.Fatal(err)
	}
	return string(data)
}

// kubelet returns the virtual kubelet's pod that is not being deleted.
func (j *joined) kubelet() *corev1.Pod {
	j.t.Helper()
	pods, err := j.client.CoreV1().Pods("interlink").List(
		j.t.Context(), metav1.ListOptions{LabelSelector: "app=virtual-node"},
	)
	if err != nil {
		j.t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			return &pods.Items[i]
		}
	}
	j.t.Fatal("no virtual kubelet")
	return nil
}

// nodeIs waits until the Ready condition of the virtual node has the status want.
func (j *joined) nodeIs(want corev1.ConditionStatus) {
	j.t.Helper()
	eventually(j.t, happens, func() error {
		node, err := j.client.CoreV1().Nodes().Get(j.t.Context(), "virtual-node", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == want {
				return nil
			}
		}
		return fmt.Errorf("it is %v", node.Status.Conditions)
	})
}

func TestInterLinkAsItsChartLeavesIt(t *testing.T) {
	j := seedJoined(t, "")
	j.nodeIs(corev1.ConditionTrue)
	if text := j.read("/root/.interlink/config/SlurmConfig.yaml"); strings.Contains(text, "ExportPodData") ||
		!strings.Contains(text, "DataRootFolder") {
		t.Errorf("the plugin's configuration: %s", text)
	}
	if text := j.read(
		"/etc/systemd/system/slurm-plugin.service",
	); !strings.Contains(text, "SLURMCONFIGPATH=/root/.interlink/config/SlurmConfig.yaml") {
		t.Errorf("the unit: %s", text)
	}
	release, err := j.client.CoreV1().Secrets("interlink").Get(
		t.Context(), "sh.helm.release.v1.virtual-node.v1", metav1.GetOptions{},
	)
	if err != nil || release.Type != "helm.sh/release.v1" {
		t.Errorf("the release: %v", err)
	}
	j.who("localhost:8080 was refused", false)
	if said := j.log(
		"interlink", j.kubelet().Name, "vk",
	); !strings.Contains(said, "does not contains both KubernetesApiAddr and KubernetesApiPort") {
		t.Errorf("the virtual kubelet says: %s", said)
	}
	shared.must(t, "seed interlink chart-ca")
	j.nodeIs(corev1.ConditionUnknown)
	shared.must(t, "reset")
	if _, err := j.client.CoreV1().Nodes().Get(
		t.Context(), "virtual-node", metav1.GetOptions{},
	); !apierrors.IsNotFound(err) {
		t.Errorf("the virtual node outlives the reset: %v", err)
	}
	for _, gone := range []string{j.edge, filepath.Join(shared.Dir, "endpoint"), filepath.Join(shared.Dir, "jobs")} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s outlives the reset: %v", gone, err)
		}
	}
}

func TestAJobAsksThroughTheEndpoint(t *testing.T) {
	j := seedJoined(t, "by-hand")
	j.answers("/version", "", http.StatusOK)
	j.who("system:serviceaccount:default:default", true)
	said, well := j.job(kubectlImage, "auth", "can-i", "--list")
	if !well || !strings.Contains(said, "selfsubjectreviews.authentication.k8s.io") ||
		!strings.Contains(said, "selfsubjectrulesreviews.authorization.k8s.io") {
		t.Errorf("%v:\n%s", well, said)
	}
	if said, well = j.job("docker.io/bitnami/kubectl", "auth", "whoami"); well ||
		!strings.Contains(said, "manifest unknown") {
		t.Errorf("an image that is gone: %v, %s", well, said)
	}
	if said, _ = j.job(
		kubectlImage, "auth", "whoami", "--server=https://192.0.2.1",
	); !strings.Contains(said, "stand-in: nothing runs") {
		t.Errorf("a server of its own: %s", said)
	}
	entries, err := os.ReadDir(filepath.Join(shared.Dir, "jobs"))
	if err != nil || len(entries) != 0 {
		t.Errorf("files of jobs stay: %v, %v", entries, err)
	}
	// Nothing but the four paths, and only with the endpoint's own authority.
	for path, status := range map[string]int{
		"/api": 403, "/apis": 403, "/openapi/v2": 403, "/healthz": 404, "/metrics": 404, "/apiserver": 404,
	} {
		if r, _, err := j.get(path, "", j.ca()); err != nil || r.StatusCode != status {
			t.Errorf("%s: %v, %v, want %d", path, r, err, status)
		}
	}
	var unknown x509.UnknownAuthorityError
	if _, _, err := j.get("/version", "", x509.NewCertPool()); !errors.As(err, &unknown) {
		t.Errorf("who trusts nobody: %v", err)
	}
	if r, _, err := j.get("/api", j.token(), j.ca()); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("with a token: %v, %v", r, err)
	}
	if r, err := http.Get("http://" + j.gate + "/version"); err != nil || r.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP: %v, %v", r, err)
	}
	// The files that nginx has are its own.
	err = filepath.Walk(filepath.Join(shared.Dir, "endpoint"), func(name string, info os.FileInfo, err error) error {
		if err == nil && strings.Contains(name, "/root/") && info.Mode().Perm()&0o077 != 0 &&
			!strings.Contains(name, "/tmp/") {
			err = fmt.Errorf("%s is %v", name, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestANewCertificateTakesARestart verifies that a running nginx keeps the old certificate after a renewal, and uses
// the new certificate after a restart.
func TestANewCertificateTakesARestart(t *testing.T) {
	j := seedJoined(t, "by-hand")
	j.answers("/version", "", http.StatusOK)
	serial := func() string {
		conn, err := tls.Dial("tcp", j.gate, &tls.Config{RootCAs: j.ca(), ServerName: j.at})
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	was := serial()
	if err := j.client.CoreV1().Secrets("interlink-api").Delete(
		t.Context(), gateCert, metav1.DeleteOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		_, err := j.client.CoreV1().Secrets("interlink-api").Get(t.Context(), gateCert, metav1.GetOptions{})
		return err
	})
	if now := serial(); now != was {
		t.Errorf("a running nginx has read a new certificate: %s, %s", was, now)
	}
	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"cause":"renewed"}}}}}`)
	if _, err := j.client.AppsV1().Deployments("interlink-api").Patch(
		t.Context(), gateName, "application/merge-patch+json", patch, metav1.PatchOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		if now := serial(); now == was {
			return errors.New("it is the old one")
		}
		return nil
	})
	j.answers("/version", "", http.StatusOK)
}

func TestTheEndpointIsWhereItIsPublished(t *testing.T) {
	j := seedJoined(t, "by-hand")
	j.answers("/version", "", http.StatusOK)
	trusted := &tls.Config{RootCAs: j.ca(), ServerName: j.at}
	dial := func(address string) error {
		conn, err := tls.Dial("tcp", address, trusted)
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	patch := []byte(
		`{"spec":{"type":"NodePort","loadBalancerSourceRanges":null,"ports":[{"name":"https","port":60443,"targetPort":60443,"nodePort":30443}]}}`,
	)
	if _, err := j.client.CoreV1().Services("interlink-api").Patch(
		t.Context(), gateName, "application/merge-patch+json", patch, metav1.PatchOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error { return dial(net.JoinHostPort(j.at, "30443")) })
	eventually(t, happens, func() error {
		if dial(j.gate) == nil {
			return errors.New("the load balancer's port is still open")
		}
		return nil
	})
	// A port of a node is nothing that the level restricted allows.
	level := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
	if _, err := j.client.CoreV1().Namespaces().Patch(
		t.Context(), "interlink-api", "application/merge-patch+json", level, metav1.PatchOptions{},
	); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(j.gate)
	patch = []byte(
		`{"spec":{"template":{"spec":{"containers":[{"name":"nginx","ports":[{"containerPort":60443,"hostPort":` + port +
			`}]}]}}}}`,
	)
	if _, err := j.client.AppsV1().Deployments("interlink-api").Patch(
		t.Context(), gateName, "application/strategic-merge-patch+json", patch, metav1.PatchOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error { return dial(j.gate) })
}
