package livetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func TestReadyLine(t *testing.T) {
	if !shared.Ready || shared.Version != "v1.37.2" {
		t.Errorf("ready %v, version %q", shared.Ready, shared.Version)
	}
	for side, context := range map[string]string{"local": "sandbox-local", "remote": "sandbox-remote"} {
		path := shared.Kubeconfigs[side]
		if want := filepath.Join(shared.Dir, side+".kubeconfig"); path != want {
			t.Errorf("kubeconfig of %s is %s, want %s", side, path, want)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode().Perm())
		}
		config, err := clientcmd.LoadFromFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if shared.Contexts[side] != context || config.CurrentContext != context || len(config.Contexts) != 1 {
			t.Errorf("contexts of %s: %q, %q, %v", side, shared.Contexts[side], config.CurrentContext, config.Contexts)
		}
		if len(config.Clusters[context].CertificateAuthorityData) == 0 {
			t.Errorf("%s needs a file for its authority", path)
		}
		if server := config.Clusters[context].Server; !strings.HasPrefix(server, "https://127.0.0.1:") {
			t.Errorf("server of %s is %s", side, server)
		}
	}
}

func TestProgressIsInWords(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(shared.progress.String()), "\n")
	if lines[0] != "starting the API servers …" || len(lines) > 5 {
		t.Errorf("standard error:\n%s", shared.progress)
	}
}

func TestKubectlAnswersToItsName(t *testing.T) {
	out, err := exec.Command(shared.Kubectl, "--kubeconfig="+shared.Kubeconfigs["remote"], "get", "nodes").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "remote-worker-2") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestBaseWorld(t *testing.T) {
	for _, side := range []string{"local", "remote"} {
		client := shared.client(t, side)
		nodes, err := client.CoreV1().Nodes().List(
			t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/os=linux,kubernetes.io/arch=amd64"},
		)
		if err != nil {
			t.Fatal(err)
		}
		if len(nodes.Items) != 2 {
			t.Errorf("%s has %d nodes", side, len(nodes.Items))
		}
		for _, node := range nodes.Items {
			if !nodeReady(node) || node.Status.Allocatable.Cpu().IsZero() || node.Spec.PodCIDR == "" {
				t.Errorf("%s: %+v", node.Name, node.Status)
			}
		}
		classes, err := client.StorageV1().StorageClasses().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(classes.Items) != 1 || classes.Items[0].Name != "standard" {
			t.Errorf("storage classes of %s: %v %v", side, classes, err)
		}
		ingresses, err := client.NetworkingV1().IngressClasses().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(ingresses.Items) != 1 || ingresses.Items[0].Name != "nginx" {
			t.Errorf("ingress classes of %s: %v %v", side, ingresses, err)
		}
		dns, err := client.CoreV1().Pods("kube-system").List(
			t.Context(), metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"},
		)
		if err != nil || len(dns.Items) != 2 {
			t.Errorf("DNS pods of %s: %v %v", side, dns, err)
		}
		if _, err := client.CoreV1().Services("kube-system").Get(t.Context(), "kube-dns", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}
