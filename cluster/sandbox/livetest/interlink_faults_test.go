package livetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestInterLinkHasEveryFault(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range shared.ask(t, "faults interlink").Faults {
		seen[f.Name] = true
		t.Run(f.Name, func(t *testing.T) {
			look := joinedShown[f.Name]
			if look == nil || f.Title == "" {
				t.Fatal("nothing looks at what it does, or says it")
			}
			j := seedJoined(t, f.Name)
			look(t, j)
			shared.must(t, "seed interlink "+f.Name) // a second time changes nothing
			look(t, j)
		})
	}
	for name := range joinedShown {
		if !seen[name] {
			t.Errorf("there is no fault %s", name)
		}
	}
}

// joinedShown maps each fault to a check that the fault has its effect.
var joinedShown = map[string]func(*testing.T, *joined){
	"by-hand": func(_ *testing.T, j *joined) { j.who("system:serviceaccount:default:default", true) },
	"page":    followedInterLinkPage,
	"chart-ca": func(t *testing.T, j *joined) {
		if _, err := j.client.CoreV1().Nodes().Get(
			t.Context(), "virtual-node", metav1.GetOptions{},
		); !apierrors.IsNotFound(err) {
			t.Errorf("a virtual kubelet that never ran has a node: %v", err)
		}
		pod := j.kubelet()
		if s := pod.Status.ContainerStatuses[0]; s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" ||
			s.LastTerminationState.Terminated == nil ||
			!strings.Contains(s.LastTerminationState.Terminated.Message, "did not find expected key") {
			t.Errorf("%+v", s)
		}
		if said := j.log("interlink", pod.Name, "vk"); !strings.Contains(said, "did not find expected key") {
			t.Errorf("it says %s", said)
		}
	},
	"verbose-token": func(t *testing.T, j *joined) {
		if said := j.log(
			"interlink", j.kubelet().Name, "vk",
		); !strings.Contains(said, "level=debug msg=\"could get token ey") {
			t.Errorf("it says %s", said)
		}
	},
	"serving-pending": func(t *testing.T, j *joined) {
		pod := j.ran(kubectlImage, "auth", "whoami")
		said, err := j.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Do(t.Context()).Raw()
		if err == nil || !strings.Contains(string(said), "tls: internal error") {
			t.Errorf("a log without a certificate: %v: %s", err, said)
		}
	},
	"projected-off": func(_ *testing.T, j *joined) { j.who("localhost:8080 was refused", false) },
	"export-off":    func(_ *testing.T, j *joined) { j.who("localhost:8080 was refused", false) },
	"no-mint": func(t *testing.T, j *joined) {
		if said, well := j.job(kubectlImage, "auth", "can-i", "--list"); well ||
			!strings.Contains(said, `User "system:anonymous" cannot create`) {
			t.Errorf("%v: %s", well, said)
		}
		if said := j.log(
			"interlink", j.kubelet().Name, "vk",
		); !strings.Contains(said, "error during token request in RemoteExecution()") {
			t.Errorf("it says %s", said)
		}
	},
	"certificate-expired": func(t *testing.T, j *joined) {
		eventually(t, happens, func() error {
			var invalid x509.CertificateInvalidError
			if _, _, err := j.get("/version", "", j.ca()); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
				return fmt.Errorf("it says %w", err)
			}
			return nil
		})
		said, well := j.job(kubectlImage, "auth", "whoami")
		if well || !strings.Contains(said, "certificate has expired") {
			t.Errorf("%v: %s", well, said)
		}
	},
	"certificate-renewed": func(t *testing.T, j *joined) {
		held, err := j.client.CoreV1().Secrets("interlink-api").Get(t.Context(), gateCert, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(held.Data[corev1.TLSCertKey], held.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tls.Dial("tcp", j.gate, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is what is looked at
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if shown := conn.ConnectionState().PeerCertificates[0]; shown.Equal(pair.Leaf) {
			t.Error("it shows the new one")
		}
		j.answers("/version", "", http.StatusOK) // by the same CA
	},
	"upgraded": func(t *testing.T, j *joined) {
		pod := j.kubelet()
		if s := pod.Status.ContainerStatuses[0]; s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" {
			t.Errorf("%+v", s)
		}
		for name, status := range map[string]string{
			"sh.helm.release.v1.virtual-node.v1": "superseded", "sh.helm.release.v1.virtual-node.v2": "deployed",
		} {
			if held, err := j.client.CoreV1().Secrets("interlink").Get(t.Context(), name, metav1.GetOptions{}); err != nil ||
				held.Labels["status"] != status {
				t.Errorf("%s: %v, %v", name, held.Labels, err)
			}
		}
	},
	"endpoint-closed": func(t *testing.T, j *joined) {
		if conn, err := net.DialTimeout("tcp", j.gate, time.Second); err == nil {
			conn.Close()
			t.Error("something listens")
		}
		j.who("refused", false)
	},
	"watches-cut": func(t *testing.T, j *joined) {
		config, err := j.client.CoreV1().ConfigMaps("interlink-api").Get(t.Context(), gateName, metav1.GetOptions{})
		if err != nil || strings.Contains(config.Data["nginx.conf"], "3600s") {
			t.Errorf("%v, %v", config, err)
		}
		j.answers("/version", "", http.StatusOK)
		if lived := j.watch(t, 5*time.Second); lived > 4*time.Second {
			t.Errorf("a watch lives for %s", lived)
		}
	},
	"anonymous-open": func(t *testing.T, j *joined) { j.answers("/api/v1/pods", "", http.StatusOK) },
	"anonymous-closed": func(t *testing.T, j *joined) {
		j.answers("/version", "", http.StatusForbidden)
		j.answers("/version", j.token(), http.StatusOK)
	},
	"no-cert-manager": func(t *testing.T, j *joined) {
		if _, err := shared.dynamic(t, "local").Resource(
			schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"},
		).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%v", err)
		}
	},
	"node-pending": func(t *testing.T, j *joined) {
		pod := j.kubelet()
		if err := j.client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
			eventually(t, happens, func() error {
				n, err := j.client.CoreV1().Nodes().Get(t.Context(), "virtual-node", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if c := n.Status.Conditions[0]; c.Status != want || c.Reason != "KubeletPending" {
					return fmt.Errorf("Ready is %s, reason %s, want %s", c.Status, c.Reason, want)
				}
				return nil
			})
		}
	},
	"no-address": func(t *testing.T, j *joined) {
		s := &corev1.Service{
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 1}}},
		}
		s.GenerateName = "waits-"
		made, err := j.client.CoreV1().Services("default").Create(t.Context(), s, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		shared.must(t, "seed interlink no-address") // looks once
		if made, err = j.client.CoreV1().Services("default").Get(t.Context(), made.Name, metav1.GetOptions{}); err != nil ||
			len(made.Status.LoadBalancer.Ingress) != 0 {
			t.Errorf("%v, %v", made, err)
		}
	},
}

// watch opens an idle watch through the endpoint, and returns how long the watch lasted.
func (j *joined) watch(t *testing.T, within time.Duration) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	held, err := j.client.CoreV1().Secrets("interlink-api").Get(ctx, gateCert, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reads, err := j.client.CoreV1().ServiceAccounts("interlink").CreateToken(
		ctx, "virtual-node", &authenticationv1.TokenRequest{}, metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{
		Host: "https://" + j.gate, BearerToken: reads.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: held.Data["ca.crt"]},
	}
	began := time.Now()
	stream, err := clientOf(t, config).CoreV1().ConfigMaps("default").Watch(
		ctx, metav1.ListOptions{FieldSelector: "metadata.name=none"},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	for range stream.ResultChan() {
	}
	return time.Since(began)
}

func followedInterLinkPage(t *testing.T, j *joined) {
	var pod *corev1.Pod
	eventually(t, happens, func() error {
		pods, err := j.client.CoreV1().Pods(
			"ingress-nginx-internal",
		).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=nginx"})
		if err != nil || len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 {
			return fmt.Errorf("%v, %w", pods, err)
		}
		if pod = &pods.Items[0]; pod.Status.ContainerStatuses[0].State.Waiting == nil {
			return errors.New("it runs")
		}
		return nil
	})
	if said := j.log(
		pod.Namespace, pod.Name, "nginx",
	); !strings.Contains(
		said,
		`invalid number of arguments in "set" directive in /opt/bitnami/nginx/conf/server_blocks/my_server_block.conf:6`,
	) {
		t.Errorf("it says %s", said)
	}
	var leaf *x509.Certificate
	eventually(t, happens, func() error {
		conn, err := tls.Dial("tcp", j.gate, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is what is looked at
		if err != nil {
			return err
		}
		defer conn.Close()
		leaf = conn.ConnectionState().PeerCertificates[0]
		return nil
	})
	if leaf.Subject.CommonName != "Kubernetes Ingress Controller Fake Certificate" ||
		leaf.Issuer.CommonName != leaf.Subject.CommonName {
		t.Errorf("%s by %s", leaf.Subject, leaf.Issuer)
	}
	certificates := schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	o, err := shared.dynamic(t, "local").Resource(certificates).Namespace(
		"ingress-nginx-internal",
	).Get(t.Context(), gateCert, metav1.GetOptions{})
	if err != nil || !strings.Contains(fmt.Sprint(o.Object["status"]), "Issuing certificate as Secret does not exist") {
		t.Errorf("%v, %v", o, err)
	}
	if _, err := j.client.NetworkingV1().IngressClasses().Get(
		t.Context(), "nginx-internal", metav1.GetOptions{},
	); !apierrors.IsNotFound(err) {
		t.Errorf("the class is there: %v", err)
	}
}
