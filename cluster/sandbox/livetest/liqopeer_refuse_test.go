package livetest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd/api"
)

// TestLiqoSaysNothingAboutASliceThatLacksALabel verifies that a slice without a required label gets no copy, no
// condition and no event. A complete slice that is created later is accepted first, so there was enough time.
func TestLiqoSaysNothingAboutASliceThatLacksALabel(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.peer()
	all := strings.Split(threeLabels, ", ")
	l.apply("local", sliceYAML("page", all[1]+", "+all[2], "class: default")) // what the published page says
	l.apply("local", sliceYAML("nowhere", all[0]+", "+all[2], "class: default"))
	l.apply(
		"local",
		sliceYAML(
			"elsewhere", `liqo.io/replication: "true", liqo.io/remoteID: paris, liqo.io/remote-cluster-id: rome`,
			"class: default",
		),
	)
	l.apply("local", sliceYAML("nodeless", all[0]+", "+all[1], "class: default"))
	l.apply("local", sliceYAML("whole", threeLabels, "class: default"))
	l.granted("nodeless")
	l.granted("whole")
	l.field("local", "VirtualNode", atMilan, "whole", "conditions/Node", "Running")
	for _, name := range []string{"page", "nowhere", "elsewhere"} {
		slice := l.get("local", "ResourceSlice", atMilan, name)
		if len(slice.GetFinalizers()) > 0 || slice.Object["status"] != nil {
			t.Errorf("%s: %v", name, slice.Object)
		}
		if l.get("remote", "ResourceSlice", atRome, name) != nil {
			t.Errorf("%s was replicated", name)
		}
		events, err := l.clients["local"].CoreV1().Events(atMilan).List(
			t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name},
		)
		if err != nil || len(events.Items) > 0 {
			t.Errorf("%s: events %v %v", name, events, err)
		}
	}
	if l.get("local", "VirtualNode", atMilan, "nodeless") != nil {
		t.Error("there is a virtual node for a slice that does not say of which cluster")
	}
}

// TestLiqoHoldsSecretsOfAControlPlane verifies that the replicator adds its finalizer to each Secret with both labels
// and the annotation, regardless of its content and namespace.
func TestLiqoHoldsSecretsOfAControlPlane(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.tenants()
	l.apply("local", "{apiVersion: v1, kind: Namespace, metadata: {name: plain}}")
	good := l.credentials("milan-user")
	stranger := good.DeepCopy()
	stranger.AuthInfos["milan-user"].ClientCertificateData = shared.config(t, "local").CertData
	stranger.AuthInfos["milan-user"].ClientKeyData = shared.config(t, "local").KeyData
	program := good.DeepCopy()
	program.AuthInfos["milan-user"] = &api.AuthInfo{
		Exec: &api.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "true", InteractiveMode: api.NeverExecInteractiveMode,
		},
	}
	file := good.DeepCopy()
	file.Clusters["rome"].CertificateAuthority = "/etc/ca.crt"
	for name, c := range map[string]struct {
		config *api.Config
		change func(*corev1.Secret)
		free   bool
	}{
		"no-type":       {good, func(s *corev1.Secret) { delete(s.Labels, "liqo.io/identity-type") }, true},
		"no-cluster":    {good, func(s *corev1.Secret) { delete(s.Labels, "liqo.io/remote-cluster-id") }, true},
		"other-cluster": {good, func(s *corev1.Secret) { s.Labels["liqo.io/remote-cluster-id"] = "paris" }, false},
		"no-annotation": {good, func(s *corev1.Secret) { delete(s.Annotations, "liqo.io/remote-tenant-namespace") }, true},
		"no-data":       {good, func(s *corev1.Secret) { s.Data = nil }, false},
		"plain":         {good, func(s *corev1.Secret) { s.Namespace = "plain" }, false},
		"stranger":      {stranger, nil, false},
		"program":       {program, nil, false},
		"file":          {file, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := atMilan
			l.secret(name, c.config, func(s *corev1.Secret) {
				if c.change != nil {
					c.change(s)
				}
				namespace = s.Namespace
			})
			if !c.free {
				l.accepted(namespace, name)
			} else if l.sentinel(name, good); len(l.get("local", "Secret", namespace, name).GetFinalizers()) > 0 {
				t.Error("it is held")
			}
			l.delete("local", "Secret", namespace, name)
			l.gone("local", "Secret", namespace, name)
		})
	}
	l.secret("whole", good, nil)
	l.accepted(atMilan, "whole")
	l.secret("second", good, nil)
	l.accepted(atMilan, "second")
}

// sentinel creates a Secret for another cluster and waits until the replicator has accepted it. By then, the replicator
// has processed all earlier objects. The Secret names a remote namespace of its own, because the replicator would
// delete the copies in another cluster's namespace as orphans.
func (l *liqo) sentinel(name string, config *api.Config) {
	l.Helper()
	id := "sentinel-" + name
	l.apply("local", namespaceFor(id, id))
	l.secret(id, config, func(s *corev1.Secret) {
		s.Namespace = id
		s.Labels["liqo.io/remote-cluster-id"] = id
		s.Annotations["liqo.io/remote-tenant-namespace"] = id
	})
	l.accepted(id, id)
}

func TestLiqoHangsWithoutTheRoleBinding(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.peer()
	l.apply("local", sliceYAML("rome", threeLabels, "class: default"))
	l.granted("rome")
	l.unbind()
	l.delete("local", "ResourceSlice", atMilan, "rome")
	l.delete("local", "Secret", atMilan, "cplane-secret")
	l.gone("local", "VirtualNode", atMilan, "rome") // what needs nobody else goes
	l.sentinel("unbound", l.credentials("milan-user"))
	for kind, name := range map[string]string{"ResourceSlice": "rome", "Secret": "cplane-secret"} {
		if o := l.get("local", kind, atMilan, name); o == nil || len(o.GetFinalizers()) != 1 {
			t.Errorf("%s went although its copy could not: %v", kind, o)
		}
	}
	if l.get("remote", "ResourceSlice", atRome, "rome") == nil {
		t.Error("the copy went without a right to delete it")
	}
	l.apply("remote", bindingYAML("milan-user"))
	l.gone("local", "ResourceSlice", atMilan, "rome")
	l.gone("local", "Secret", atMilan, "cplane-secret")
}

// TestLiqoReplicatesNothingWithoutRights verifies that the credential of a user without permissions on the provider is
// accepted, but that nothing is replicated.
func TestLiqoReplicatesNothingWithoutRights(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.tenants()
	l.apply("remote", bindingYAML("somebody-else"))
	l.secret("cplane-secret", l.credentials("milan-user"), nil)
	l.accepted(atMilan, "cplane-secret")
	l.apply("local", sliceYAML("rome", threeLabels, "class: default"))
	l.field("local", "ResourceSlice", atMilan, "rome", "spec.consumerClusterID", "milan")
	l.sentinel("after", l.credentials("milan-user"))
	if l.get("remote", "ResourceSlice", atRome, "rome") != nil {
		t.Error("it was replicated without any right")
	}
	l.apply("remote", bindingYAML("milan-user"))
	l.granted("rome")
}

func TestLiqoTenantConditions(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.peer()
	l.apply("local", sliceYAML("before", threeLabels, "class: default"))
	l.granted("before")
	l.apply("remote", strings.Replace(tenantYAML("milan", atRome, "milan"), "Active", "Cordoned", 1))
	l.apply("local", sliceYAML("cordoned", threeLabels, "class: default"))
	l.apply("local", sliceYAML("custom", threeLabels, "class: gold"))
	l.field("remote", "ResourceSlice", atRome, "custom", "spec.consumerClusterID", "milan")
	for _, name := range []string{"cordoned", "custom"} {
		l.field("local", "ResourceSlice", atMilan, name, "conditions/Authentication", "Accepted")
		l.field("local", "ResourceSlice", atMilan, name, "conditions/Resources", "Denied")
	}
	l.apply("remote", tenantYAML("milan", atRome, "milan"))
	l.granted("cordoned")
	if got := valueAt(l.get("local", "ResourceSlice", atMilan, "custom"), "conditions/Resources"); got != "Denied" {
		t.Errorf("resources of a class of somebody else: %v", got)
	}
	if l.get("local", "VirtualNode", atMilan, "custom") != nil {
		t.Error("a virtual node without resources")
	}
	l.apply("remote", strings.Replace(tenantYAML("milan", atRome, "milan"), "Active", "Drained", 1))
	for _, name := range []string{"before", "cordoned", "custom"} {
		l.gone("remote", "ResourceSlice", atRome, name)
	}
	l.gone("remote", "NamespaceMap", atRome, "rome")
	bindings, err := l.clients["remote"].RbacV1().RoleBindings(atRome).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(bindings.Items) > 0 {
		t.Errorf("%v %v", bindings, err)
	}
}

func TestLiqoWaitsForAHandshakeForEver(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.apply(
		"remote",
		namespaceFor(atRome, "milan")+"---"+
			strings.Replace(tenantYAML("milan", atRome, "milan"), "TolerateNoHandshake", "KeysExchange", 1),
	)
	eventually(t, happens, func() error {
		events, err := l.clients["remote"].CoreV1().Events(atRome).List(
			t.Context(), metav1.ListOptions{FieldSelector: "reason=NonceNotFound"},
		)
		if err != nil || len(events.Items) != 1 {
			return fmt.Errorf("%d events: %w", len(events.Items), err)
		}
		return nil
	})
	if o := l.get("remote", "Tenant", atRome, "milan"); o.Object["status"] != nil {
		t.Errorf("%v", o.Object["status"])
	}
	if all, err := l.clients["remote"].RbacV1().ClusterRoleBindings().List(
		t.Context(), metav1.ListOptions{},
	); err != nil || anyNamed(all.Items, "-milan") {
		t.Errorf("it was bound: %v", err)
	}
}

func anyNamed(all []rbacv1.ClusterRoleBinding, end string) bool {
	for _, b := range all {
		if strings.HasSuffix(b.Name, end) {
			return true
		}
	}
	return false
}

func TestLiqoReplicatorThatIsDownDoesNothing(t *testing.T) {
	l := seedPeering(t, "replicator-down")
	l.tenants()
	l.secret("cplane-secret", l.credentials("milan-user"), nil)
	l.apply("local", sliceYAML("rome", threeLabels, "class: default"))
	l.field("local", "ResourceSlice", atMilan, "rome", "spec.consumerClusterID", "milan") // the manager runs
	if o := l.get("local", "Secret", atMilan, "cplane-secret"); len(o.GetFinalizers()) > 0 {
		t.Errorf("%v", o.GetFinalizers())
	}
	patch := []byte(`{"spec":{"replicas":1}}`)
	if _, err := l.clients["local"].AppsV1().Deployments("liqo").Patch(
		t.Context(), "liqo-crd-replicator", "application/merge-patch+json", patch, metav1.PatchOptions{},
	); err != nil {
		t.Fatal(err)
	}
	l.granted("rome")
}
