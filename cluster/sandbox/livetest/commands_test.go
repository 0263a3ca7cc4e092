package livetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestStopAndStartKeepData(t *testing.T) {
	client, host := shared.client(t, "local"), shared.config(t, "local").Host
	space := namespace(t, client)
	shared.must(t, "stop local")
	shared.must(t, "stop local") // is stopped, and that is fine
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), space, metav1.GetOptions{}); err == nil {
		t.Error("a stopped API server answers")
	}
	if _, err := shared.client(t, "remote").Discovery().ServerVersion(); err != nil {
		t.Errorf("the other side went with it: %v", err)
	}
	shared.must(t, "start local")
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), space, metav1.GetOptions{}); err != nil {
		t.Errorf("after the start: %v", err)
	}
	if now := shared.config(t, "local").Host; now != host {
		t.Errorf("moved from %s to %s", host, now)
	}
	eventually(t, happens, func() error { // the controllers are back as well
		_, err := client.CoreV1().ConfigMaps(namespace(t, client)).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
}

func TestUnknownCommand(t *testing.T) {
	for _, command := range []string{"stop", "stop both", "seed", "seed nothing", "reset local", "", "start local now"} {
		ok, fault := shared.tell(t, command)
		if ok || !strings.Contains(fault, "unknown command") {
			t.Errorf("%q: %v %q", command, ok, fault)
		}
	}
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

func TestSeedRenku(t *testing.T) {
	t.Cleanup(func() { shared.must(t, "reset") })
	shared.must(t, "seed renku")
	shared.must(t, "seed renku")
	if _, err := shared.client(t, "local").CoreV1().Namespaces().Get(
		t.Context(), "renku", metav1.GetOptions{},
	); err != nil {
		t.Error(err)
	}
	remote := shared.client(t, "remote")
	nodes, err := remote.CoreV1().Nodes().List(t.Context(),
		metav1.ListOptions{LabelSelector: "renku.io/node-purpose=user,kubernetes.io/os=linux"})
	if err != nil || len(nodes.Items) != 2 {
		t.Errorf("nodes for sessions: %v %v", nodes, err)
	}
	_, err = shared.dynamic(t, "remote").Resource(apiServices).Get(
		t.Context(), "v1beta1.metrics.k8s.io", metav1.GetOptions{},
	)
	if apierrors.IsNotFound(err) {
		t.Skip("this machine has no address other than loopback")
	}
	for _, path := range []string{"nodes", "pods", "namespaces/kube-system/pods"} {
		raw, err := remote.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/" + path).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(raw), `"items":[]`) {
			t.Errorf("%s: %s %v", path, raw, err)
		}
	}
	_, err = remote.Discovery().RESTClient().Get().AbsPath(
		"/apis/metrics.k8s.io/v1beta1/nodes/remote-worker-1",
	).DoRaw(t.Context())
	if !apierrors.IsNotFound(err) {
		t.Errorf("measures of a node: %v", err)
	}
}

func TestResetBringsBackWhatWas(t *testing.T) {
	client := shared.client(t, "local")
	space := namespace(t, client)
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/never"}}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-reset"}}
	_, err1 := client.CoreV1().ConfigMaps(space).Create(t.Context(), held, metav1.CreateOptions{})
	_, err2 := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	_, err3 := client.CoreV1().Nodes().Patch(t.Context(), "local-worker-1", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"kubernetes.io/os":"plan9","mine":"yes"}}}`), metav1.PatchOptions{})
	err4 := client.AppsV1().Deployments("kube-system").Delete(t.Context(), "coredns", metav1.DeleteOptions{})
	err5 := client.CoreV1().Nodes().Delete(t.Context(), "local-worker-2", metav1.DeleteOptions{})
	// No controller deletes it, and it would outlive its namespace.
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "by-hand", Labels: map[string]string{discoveryv1.LabelServiceName: "s"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.9"}}},
	}
	_, err6 := client.DiscoveryV1().EndpointSlices(space).Create(t.Context(), slice, metav1.CreateOptions{})
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds what the first has made again
		shared.must(t, "reset")
		if _, err := client.DiscoveryV1().EndpointSlices(space).Get(
			t.Context(), slice.Name, metav1.GetOptions{},
		); !apierrors.IsNotFound(err) {
			t.Errorf("the EndpointSlice: %v", err)
		}
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), space, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the namespace: %v", err)
		}
		if _, err := client.RbacV1().ClusterRoles().Get(
			t.Context(), role.Name, metav1.GetOptions{},
		); !apierrors.IsNotFound(err) {
			t.Errorf("the role: %v", err)
		}
		TestBaseWorld(t)
		node, err := client.CoreV1().Nodes().Get(t.Context(), "local-worker-1", metav1.GetOptions{})
		if err != nil || node.Labels["mine"] != "" {
			t.Errorf("labels %v, %v", node.Labels, err)
		}
	}
}

func TestResetStartsWhatIsStopped(t *testing.T) {
	shared.must(t, "stop remote")
	if ok, fault := shared.tell(t, "seed renku"); ok || !strings.Contains(fault, "stopped") {
		t.Errorf("seed of a stopped side: %v %q", ok, fault)
	}
	shared.must(t, "reset")
	if _, err := shared.client(t, "remote").Discovery().ServerVersion(); err != nil {
		t.Error(fmt.Errorf("after the reset: %w", err))
	}
}
