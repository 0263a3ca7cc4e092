package livetest

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// refused fails the test unless a webhook denies YAML, both in a dry run and in a normal request.
func (l *liqo) refused(side, yaml, why string) {
	l.Helper()
	for _, dry := range [][]string{{metav1.DryRunAll}, nil} {
		if err := l.try(side, yaml, dry...); err == nil || !strings.Contains(err.Error(), "denied the request: "+why) {
			l.Errorf("dry run %v: %v, want %q", dry, err, why)
		}
	}
}

func TestLiqoWebhooksOfTenants(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.apply("remote", namespaceFor(atRome, "milan")+"---"+namespaceFor("liqo-tenant-paris", "paris"))
	l.apply(
		"remote", "{apiVersion: v1, kind: Namespace, metadata: {name: plain, labels: {liqo.io/remote-cluster-id: milan}}}",
	)
	l.refused("remote", tenantYAML("milan", "plain", "milan"), "tenant must be in a tenant namespace")
	l.refused("remote", tenantYAML("paris", atRome, "paris"), "tenant of cluster")
	l.refused(
		"remote",
		strings.Replace(
			tenantYAML("milan", atRome, "milan"), "liqo.io/remote-cluster-id: milan", "liqo.io/remote-cluster-id: paris", 1,
		),
		"tenant label",
	)
	l.apply(
		"remote",
		strings.Replace(tenantYAML("my-tenant", atRome, "milan"), ", labels: {liqo.io/remote-cluster-id: milan}", "", 1),
	)
	l.field("remote", "Tenant", atRome, "my-tenant", "metadata.labels", "map[liqo.io/remote-cluster-id:milan]")
	l.refused("remote", tenantYAML("second", atRome, "milan"), "tenant already exists in namespace")
	l.refused("remote", tenantYAML("my-tenant", "liqo-tenant-paris", "paris"), "tenant with name my-tenant already exists")
	l.apply("remote", tenantYAML("my-tenant", atRome, "milan")) // once more changes nothing
	l.field("remote", "Tenant", atRome, "my-tenant", "status.tenantNamespace", atRome)

	// Without its namespace's labels a Tenant cannot even go.
	strip := []byte(`{"metadata":{"labels":{"liqo.io/tenant-namespace":null}}}`)
	if _, err := l.in(
		"remote", "Namespace", "",
	).Patch(t.Context(), atRome, "application/merge-patch+json", strip, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	l.delete("remote", "Tenant", atRome, "my-tenant")
	free := []byte(`{"metadata":{"finalizers":null}}`)
	_, err := l.in(
		"remote", "Tenant", atRome,
	).Patch(t.Context(), "my-tenant", "application/merge-patch+json", free, metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "tenant must be in a tenant namespace") {
		t.Errorf("the finalizer went: %v", err)
	}
	l.apply("remote", namespaceFor(atRome, "milan"))
	l.gone("remote", "Tenant", atRome, "my-tenant")
}

func TestLiqoWebhooksOfTheConsumer(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.peer()
	l.apply("local", namespaceFor("liqo-tenant-paris", "paris"))
	l.apply("local", sliceYAML("test", threeLabels, "class: default"))
	l.refused(
		"local",
		strings.ReplaceAll(
			strings.Replace(sliceYAML("test", threeLabels, "class: default"), atMilan, "liqo-tenant-paris", 1), ": rome",
			": paris",
		),
		"resourceslice with name test already exists",
	)

	l.apply("local", "{apiVersion: v1, kind: Namespace, metadata: {name: demo}}")
	l.refused("local", offloadingYAML("demo", "other", ""), "namespaceoffloading must be called")
	l.refused(
		"local", offloadingYAML("demo", "offloading", "namespaceMappingStrategy: SelectedName"),
		"namespaceoffloading with strategy SelectedName",
	)
	l.apply("local", offloadingYAML("demo", "offloading", "namespaceMappingStrategy: DefaultName"))
	l.refused(
		"local", offloadingYAML("demo", "offloading", "namespaceMappingStrategy: EnforceSameName"),
		"namespaceoffloading spec.namespaceMappingStrategy",
	)

	l.apply("local", sliceYAML("local-worker-1", threeLabels, "class: default"))
	l.granted("local-worker-1")
	l.field("local", "VirtualNode", atMilan, "test", "conditions/Node", "Running")
	if l.get("local", "VirtualNode", atMilan, "local-worker-1") != nil {
		t.Error("a virtual node has the name of a real one")
	}
	node, err := l.clients["local"].CoreV1().Nodes().Get(t.Context(), "local-worker-1", metav1.GetOptions{})
	if err != nil || node.Labels["liqo.io/type"] != "" {
		t.Errorf("%v %v", node, err)
	}
}

// TestLiqoConsumerCannotLiftACordon verifies that the consumer cannot remove the provider's cordon from a slice with
// its own credentials.
func TestLiqoConsumerCannotLiftACordon(t *testing.T) {
	l := seedPeering(t, noNetwork)
	l.peer()
	l.apply("local", sliceYAML("rome", threeLabels, "class: default"))
	l.granted("rome")
	cordon := []byte(`{"metadata":{"annotations":{"liqo.io/cordon":"true"}}}`)
	if _, err := l.in(
		"remote", "ResourceSlice", atRome,
	).Patch(t.Context(), "rome", "application/merge-patch+json", cordon, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	l.field("remote", "Quota", atRome, "rome-efee614420c5", "spec.cordoned", "true")
	config := l.restOf(l.credentials("milan-user"))
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lift := []byte(`{"metadata":{"annotations":{"liqo.io/cordon":null}}}`)
	err = client.RESTClient().Patch("application/merge-patch+json").
		AbsPath(
			"/apis/authentication.liqo.io/v1beta1/namespaces/" + atRome + "/resourceslices/rome",
		).Body(lift).Do(t.Context()).Error()
	if err == nil || !strings.Contains(err.Error(), "resourceslice label") {
		t.Errorf("it was lifted: %v", err)
	}
}

func TestLiqoWebhooksGoWithTheScenario(t *testing.T) {
	seedPeering(t, "")
	count := func() int {
		n := 0
		for _, side := range []string{"local", "remote"} {
			all, err := shared.client(t, side).AdmissionregistrationV1().ValidatingWebhookConfigurations().List(
				t.Context(), metav1.ListOptions{},
			)
			if err != nil {
				t.Fatal(err)
			}
			n += len(all.Items)
		}
		return n
	}
	if n := count(); n != 2 {
		t.Errorf("%d webhook configurations", n)
	}
	shared.must(t, "seed liqo")
	if n := count(); n != 2 {
		t.Errorf("%d webhook configurations after the second seed", n)
	}
	shared.must(t, "reset")
	if n := count(); n != 0 {
		t.Errorf("%d webhook configurations are left", n)
	}
}
