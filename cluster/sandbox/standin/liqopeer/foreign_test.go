package liqopeer

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNetworkModuleNamesWhatIsMissing(t *testing.T) {
	of := func(value string) []network {
		n := network{ObjectMeta: metav1.ObjectMeta{Name: "rome", Labels: map[string]string{remoteClusterID: "rome"}}}
		n.Status.Value = value
		return []network{n}
	}
	l := &look{modules: enabled{networking: true}}
	if got, err := l.networkModule(t.Context(), "rome", module{}); err != nil || got.Enabled || len(got.Conditions) > 0 {
		t.Errorf("with nothing: %v %v", got, err)
	}
	l.networks = map[schema.GroupVersionResource][]network{configurations: of("")}
	got, err := l.networkModule(t.Context(), "rome", module{})
	if err != nil || !got.Enabled {
		t.Fatalf("%v %v", got, err)
	}
	for kind, want := range map[string]string{
		"NetworkConfigurationStatus": "Ready", "NetworkGatewayPresence": "NotReady", "NetworkConnectionStatus": "NotReady",
		"NetworkGatewayServerStatus": "", "NetworkGatewayClientStatus": "",
	} {
		if said := says(got.Conditions, kind); said != want {
			t.Errorf("%s: %q, want %q", kind, said, want)
		}
	}
	l.networks[connections] = of("Connected")
	then, err := l.networkModule(t.Context(), "rome", got)
	if err != nil || says(then.Conditions, "NetworkConnectionStatus") != "Established" {
		t.Errorf("connected: %v %v", then, err)
	}
	l.modules.networking = false
	if got, err := l.networkModule(t.Context(), "rome", then); err != nil || got.Enabled || len(got.Conditions) > 0 {
		t.Errorf("switched off: %v %v", got, err)
	}
}

func TestStatesOfGatewaysAndConnections(t *testing.T) {
	for _, c := range []struct {
		ready, lacking int32
		want           string
	}{{0, 1, "NotReady"}, {1, 1, "SomeNotReady"}, {1, 0, "Ready"}} {
		d := &appsv1.Deployment{Status: appsv1.DeploymentStatus{ReadyReplicas: c.ready, UnavailableReplicas: c.lacking}}
		if got := gatewayState(d); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if got := gatewayState(nil); got != "NotReady" {
		t.Errorf("without a Deployment: %s", got)
	}
	for value, want := range map[string]string{
		"Connected": "Established", "Connecting": "Pending", "Error": "Error", "": "Error",
	} {
		if got := connectionState(&network{Status: networkStatus{Value: value}}); got != want {
			t.Errorf("%q: %s", value, got)
		}
	}
}

func TestRolesOfForeignClusters(t *testing.T) {
	consumer := []tenant{{Spec: tenantSpec{ClusterID: "rome"}}}
	nodes := []virtualNode{{Spec: virtualNodeSpec{ClusterID: "rome"}}}
	for name, c := range map[string]struct {
		look       look
		kubeconfig bool
		want       string
	}{
		"nothing":        {look{}, false, "Unknown"},
		"a kubeconfig":   {look{}, true, "Provider"},
		"a virtual node": {look{virtualNodes: nodes}, false, "Provider"},
		"an identity":    {look{identities: []identity{{Spec: identitySpec{ClusterID: "rome"}}}}, false, "Unknown"},
		"a tenant":       {look{tenants: consumer}, false, "Consumer"},
		"both":           {look{tenants: consumer, virtualNodes: nodes}, false, "ConsumerAndProvider"},
	} {
		if got := c.look.role("rome", c.kubeconfig); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestATenantIsReadyWhateverItsConditionIs(t *testing.T) {
	o := &tenant{Spec: tenantSpec{TenantCondition: cordoned}}
	if got := tenantCondition(o).Status; got != "NotReady" {
		t.Errorf("without a namespace: %s", got)
	}
	o.Status.TenantNamespace = "liqo-tenant-milan"
	if got := tenantCondition(o).Status; got != "Ready" {
		t.Errorf("cordoned: %s", got)
	}
}

func TestAProviderThatAnswersIsNotDead(t *testing.T) {
	for _, c := range []struct {
		note, status string
		want         bool
	}{{"true", "", true}, {"true", "Error", true}, {"true", "Established", false}, {"", "Error", false}} {
		f := &foreign{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{unreachable: c.note}}}
		if c.status != "" {
			f.Status.Conditions = []condition{{Type: "APIServerStatus", Status: c.status}}
		}
		if got := isDead(f); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestNodesLookLikeAVirtualKubelets(t *testing.T) {
	n := &virtualNode{ObjectMeta: metav1.ObjectMeta{Name: "rome"}}
	n.Spec.ClusterID, n.Spec.Labels = "rome", map[string]string{"city": "rome"}
	got := newNode(n)
	for key, want := range map[string]string{
		nodeType: virtual, remoteClusterID: "rome", "kubernetes.io/role": "agent", "storage.liqo.io/available": "false",
		"city": "rome",
		"node.kubernetes.io/exclude-from-external-load-balancers": "true",
	} {
		if got.Labels[key] != want {
			t.Errorf("%s: %q, want %q", key, got.Labels[key], want)
		}
	}
	if len(got.Spec.Taints) != 1 || got.Spec.Taints[0].Key != notAllowed {
		t.Errorf("%v", got.Spec.Taints)
	}
}
