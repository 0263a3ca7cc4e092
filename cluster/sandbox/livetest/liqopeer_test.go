package livetest

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// noNetwork is the fault that turns Liqo's networking off, so that nothing waits for a tunnel. Another test covers
// tunnels.
const noNetwork = "networking-off"

func TestLiqoOffloadsANamespaceAndTakesItBack(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.peer()
	l.field("remote", "Tenant", atRome, "milan", "status.tenantNamespace", atRome)
	l.apply("local", sliceYAML("rome", threeLabels, "class: default, resources: {cpu: 20}"))
	l.granted("rome")
	l.field(
		"remote", "ResourceSlice", atRome, "rome", "metadata.labels",
		"map[liqo.io/originID:milan liqo.io/remote-cluster-id:milan liqo.io/remoteID:rome liqo.io/replicated:true "+
			"liqo.io/replication:false]",
	)
	l.field("local", "ResourceSlice", atMilan, "rome", "metadata.finalizers", "[crdreplicator.liqo.io/resource]")
	l.field(
		"local", "ResourceSlice", atMilan, "rome", "status.resources",
		"map[cpu:20 ephemeral-storage:20Gi memory:8Gi pods:110]",
	)
	l.field(
		"local", "Identity", atMilan, "resourceslice-rome", "status.kubeconfigSecretRef.name",
		"kubeconfig-resourceslice-rome",
	)
	l.field("local", "VirtualNode", atMilan, "rome", "conditions/Node", "Running")
	l.field("remote", "Quota", atRome, "rome-efee614420c5", "spec.resources.cpu", "20")
	l.virtualNodeReady("rome")
	l.identityWorks("rome")

	l.apply(
		"local",
		"{apiVersion: v1, kind: Namespace, metadata: {name: demo}}\n---"+
			offloadingYAML("demo", "offloading", "clusterSelector: {nodeSelectorTerms: []}"),
	)
	l.field("local", "NamespaceOffloading", "demo", "offloading", "status.offloadingPhase", "Ready")
	l.field("local", "NamespaceOffloading", "demo", "offloading", "status.remoteNamespaceName", "demo-milan")
	l.field("local", "NamespaceOffloading", "demo", "offloading", "status.observedGeneration", "1")
	l.field(
		"local", "Namespace", "", "demo", "metadata.labels",
		"map[kubernetes.io/metadata.name:demo liqo.io/scheduling-enabled:true]",
	)
	l.field("remote", "Namespace", "", "demo-milan", "status.phase", "Active")
	l.field("local", "ForeignCluster", "", "rome", "status.role", "Provider")
	l.field("local", "ForeignCluster", "", "rome", "conditions/APIServerStatus", "Established")
	l.field("remote", "ForeignCluster", "", "milan", "status.role", "Consumer")

	l.delete("local", "NamespaceOffloading", "demo", "offloading")
	l.gone("local", "NamespaceOffloading", "demo", "offloading")
	if l.get("remote", "Namespace", "", "demo-milan") != nil {
		t.Error("the offloading went before the namespace on the provider")
	}
	l.field("local", "Namespace", "", "demo", "metadata.labels", "map[kubernetes.io/metadata.name:demo]")
	l.delete("local", "ResourceSlice", atMilan, "rome")
	l.gone("local", "ResourceSlice", atMilan, "rome")
	for _, left := range [][4]string{
		{"local", "VirtualNode", atMilan, "rome"},
		{"local", "NamespaceMap", atMilan, "rome"},
		{"local", "Identity", atMilan, "resourceslice-rome"},
		{"local", "Secret", atMilan, "kubeconfig-resourceslice-rome"},
		{"remote", "ResourceSlice", atRome, "rome"},
		{"remote", "NamespaceMap", atRome, "rome"},
		{"remote", "Quota", atRome, "rome-efee614420c5"},
	} {
		l.gone(left[0], left[1], left[2], left[3])
	}
	if _, err := l.clients["local"].CoreV1().Nodes().Get(
		t.Context(), "rome", metav1.GetOptions{},
	); !apierrors.IsNotFound(err) {
		t.Errorf("the node is still there: %v", err)
	}
	l.delete("local", "Secret", atMilan, "cplane-secret")
	l.gone("local", "Secret", atMilan, "cplane-secret")
	l.delete("remote", "Tenant", atRome, "milan")
	l.gone("remote", "Tenant", atRome, "milan")
	l.field("local", "ForeignCluster", "", "rome", "status.role", "Unknown") // it stays
	for side, id := range map[string]string{"local": "rome", "remote": "milan"} {
		l.delete(side, "Namespace", "", "liqo-tenant-"+id)
		l.gone(side, "Namespace", "", "liqo-tenant-"+id)
		l.delete(side, "ForeignCluster", "", id)
		l.gone(side, "ForeignCluster", "", id)
	}
}

// virtualNodeReady waits until the Node of a virtual node is ready.
func (l *liqo) virtualNodeReady(name string) {
	l.Helper()
	eventually(l.T, happens, func() error {
		node, err := l.clients["local"].CoreV1().Nodes().Get(l.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == "virtual-node.liqo.io/not-allowed" && t.Effect == corev1.TaintEffectNoExecute
		})
		if !nodeReady(*node) || !tainted || node.Labels["liqo.io/type"] != "virtual-node" ||
			node.Status.Allocatable.Cpu().String() != "20" {
			return fmt.Errorf("%v %v %v", node.Labels, node.Spec.Taints, node.Status)
		}
		return nil
	})
}

// identityWorks verifies that the provider accepts the identity in the kubeconfig of a slice.
func (l *liqo) identityWorks(slice string) {
	l.Helper()
	secret, err := l.clients["local"].CoreV1().Secrets(atMilan).Get(
		l.Context(), "kubeconfig-resourceslice-"+slice, metav1.GetOptions{},
	)
	if err != nil {
		l.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		l.Fatal(err)
	}
	// The Tenant's binding gives the group milan this in the whole cluster.
	client := clientOf(l.T, config)
	if _, err := client.StorageV1().StorageClasses().List(l.Context(), metav1.ListOptions{}); err != nil {
		l.Error(err)
	}
	if _, err := client.CoreV1().Secrets("").List(l.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		l.Errorf("it may read Secrets: %v", err)
	}
}

func TestLiqoPeersInBothDirectionsAtOnce(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.peer()
	l.apply("local", sliceYAML("rome", threeLabels, "class: default"))
	l.granted("rome")
	l.apply("local", tenantYAML("rome", atMilan, "rome"))
	l.field("local", "Tenant", atMilan, "rome", "status.tenantNamespace", atMilan)
	l.field("local", "ForeignCluster", "", "rome", "status.role", "ConsumerAndProvider")
	l.field("local", "VirtualNode", atMilan, "rome", "conditions/VirtualKubelet", "Running")
}

func TestLiqoNodeIsReadyWhileThereIsATunnel(t *testing.T) {
	l := seedPeering(t, "")
	tunnel := newPair(t, "rome")
	tunnel.create(t)
	l.peer()
	l.apply("local", sliceYAML("rome", threeLabels, "class: default, resources: {cpu: 20}"))
	tunnel.fares(t, "Connected")
	l.virtualNodeReady("rome")
	tunnel.remove(t, "remote", "GatewayServer")
	l.field("local", "VirtualNode", atMilan, "rome", "conditions/Node", "Running") // which says nothing of it
	eventually(t, happens, func() error {
		node, err := l.clients["local"].CoreV1().Nodes().Get(t.Context(), "rome", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeNetworkUnavailable && c.Reason == "LiqoNetworkingDown" && !nodeReady(*node) {
				return nil
			}
		}
		return fmt.Errorf("%v", node.Status.Conditions)
	})
}

func TestLiqoOffloadingsThatDoNotWork(t *testing.T) {
	l := seedPeering(t, noNetwork)
	for _, name := range []string{"early", "taken", "choosy", "same", "named"} {
		l.apply("local", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name))
	}
	l.apply("local", offloadingYAML("early", "offloading", ""))
	l.field("local", "NamespaceOffloading", "early", "offloading", "status.offloadingPhase", "NoClusterSelected")
	l.peer()
	l.apply("local", sliceYAML("rome", threeLabels, "class: default"))
	l.field("local", "NamespaceOffloading", "early", "offloading", "status.offloadingPhase", "Ready")

	l.apply("remote", "{apiVersion: v1, kind: Namespace, metadata: {name: taken-milan}}")
	l.apply("local", offloadingYAML("taken", "offloading", ""))
	l.apply(
		"local",
		offloadingYAML(
			"choosy", "offloading",
			"clusterSelector: {nodeSelectorTerms: [{matchExpressions: [{key: city, operator: In, values: [napoli]}]}]}",
		),
	)
	l.apply("local", offloadingYAML("same", "offloading", "namespaceMappingStrategy: EnforceSameName"))
	l.apply(
		"local",
		offloadingYAML("named", "offloading", "namespaceMappingStrategy: SelectedName, remoteNamespaceName: far-away"),
	)
	l.field("local", "NamespaceOffloading", "same", "offloading", "status.offloadingPhase", "Ready")
	l.field("local", "NamespaceOffloading", "named", "offloading", "status.offloadingPhase", "Ready")
	l.field("local", "NamespaceOffloading", "choosy", "offloading", "status.offloadingPhase", "NoClusterSelected")
	l.field("local", "NamespaceOffloading", "taken", "offloading", "status.offloadingPhase", "AllFailed")
	l.field("remote", "NamespaceMap", atRome, "rome", "status.currentMapping.taken.phase", "CreationLoopBackOff")
	for _, name := range []string{"same", "far-away"} {
		l.field("remote", "Namespace", "", name, "status.phase", "Active")
	}
	l.delete("local", "NamespaceOffloading", "taken", "offloading")
	l.gone("local", "NamespaceOffloading", "taken", "offloading")
	if n := l.get("remote", "Namespace", "", "taken-milan"); n == nil || n.GetDeletionTimestamp() != nil {
		t.Error("somebody else's namespace was deleted")
	}
}

func TestLiqoForgetsAProviderThatIsGivenUp(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.peer()
	l.apply("local", sliceYAML("rome", threeLabels, "class: default"))
	l.field("local", "VirtualNode", atMilan, "rome", "conditions/Node", "Running")
	l.apply(
		"local", "{apiVersion: v1, kind: Namespace, metadata: {name: demo}}\n---"+offloadingYAML("demo", "offloading", ""),
	)
	l.field("local", "NamespaceOffloading", "demo", "offloading", "status.offloadingPhase", "Ready")
	shared.must(t, "stop remote")
	t.Cleanup(func() { shared.must(t, "start remote") }) // before the reset
	for _, o := range [][3]string{
		{"NamespaceOffloading", "demo", "offloading"},
		{"ResourceSlice", atMilan, "rome"},
		{"Secret", atMilan, "cplane-secret"},
	} {
		l.delete("local", o[0], o[1], o[2])
	}
	l.field("local", "VirtualNode", atMilan, "rome", "metadata.name", "rome")
	patch := []byte(`{"metadata":{"annotations":{"liqo.io/foreign-cluster-permanently-unreachable":"true"}}}`)
	if _, err := l.in(
		"local", "ForeignCluster", "",
	).Patch(t.Context(), "rome", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, o := range [][3]string{
		{"NamespaceOffloading", "demo", "offloading"},
		{"ResourceSlice", atMilan, "rome"},
		{"Secret", atMilan, "cplane-secret"},
		{"VirtualNode", atMilan, "rome"},
		{"NamespaceMap", atMilan, "rome"},
	} {
		l.gone("local", o[0], o[1], o[2])
	}
	l.delete("local", "Namespace", "", atMilan)
	l.gone("local", "Namespace", "", atMilan)
}
