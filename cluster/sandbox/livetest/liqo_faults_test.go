package livetest

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	liqoSlices = schema.GroupVersionResource{
		Group: "authentication.liqo.io", Version: "v1beta1", Resource: "resourceslices",
	}
	liqoTenants   = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: "tenants"}
	liqoTemplates = schema.GroupVersionResource{
		Group: "networking.liqo.io", Version: "v1beta1", Resource: "wggatewayservertemplates",
	}
)

func TestLiqoHasEveryFault(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range shared.ask(t, "faults liqo").Faults {
		seen[f.Name] = true
		t.Run(f.Name, func(t *testing.T) {
			look := liqoShown[f.Name]
			if look == nil {
				t.Fatal("nothing looks at what it does")
			}
			seedPairs(t, f.Name)
			look(t)
		})
	}
	for name := range liqoShown {
		if !seen[name] {
			t.Errorf("there is no fault %s", name)
		}
	}
}

func TestLiqoSecondSeedChangesNothing(t *testing.T) {
	seedPairs(t, "")
	before := map[string]map[string]string{}
	for _, side := range []string{"local", "remote"} {
		eventually(t, happens, func() error {
			first, second := versions(t, side), versions(t, side)
			before[side] = second
			if fmt.Sprint(first) != fmt.Sprint(second) {
				return errors.New("it still changes")
			}
			return nil
		})
	}
	shared.must(t, "seed liqo")
	for side, was := range before {
		if now := versions(t, side); fmt.Sprint(now) != fmt.Sprint(was) {
			t.Errorf("%s: %v, was %v", side, now, was)
		}
	}
}

// liqoShown maps each fault to a check that the fault has its effect.
var liqoShown = map[string]func(*testing.T){
	"version-skew":          func(t *testing.T) { liqoVersions(t, "v1.2.0", "v1.1.2") },
	"old-liqo":              func(t *testing.T) { liqoVersions(t, "v1.2.0", "v1.0.0") },
	"webhook-cert-expiring": webhookExpires,
	"replicator-down": func(t *testing.T) {
		d, err := shared.client(t, "local").AppsV1().Deployments("liqo").Get(
			t.Context(), "liqo-crd-replicator", metav1.GetOptions{},
		)
		if err != nil || d.Status.AvailableReplicas != 0 {
			t.Errorf("%v %v", d.Status, err)
		}
	},
	"same-id": func(t *testing.T) {
		for _, side := range []string{"local", "remote"} {
			m, err := shared.client(t, side).CoreV1().ConfigMaps("liqo").Get(
				t.Context(), "liqo-clusterid-configmap", metav1.GetOptions{},
			)
			if err != nil || m.Data["CLUSTER_ID"] != "milan" {
				t.Errorf("%s: %v %v", side, m.Data, err)
			}
		}
	},
	"networking-off": func(t *testing.T) {
		p := newPair(t, "off")
		p.create(t)
		eventually(t, happens, func() error {
			if p.field(t, "remote", "GatewayServer", p.id, "status", "endpoint") == "" {
				return errors.New("the other side does not come up")
			}
			return nil
		})
		if err := absent("local", "GatewayClient", "status")(t, p); err != nil {
			t.Error(err)
		}
	},
	"no-external-cidr": func(t *testing.T) {
		n, err := shared.dynamic(t, "remote").Resource(liqoNetworks).Namespace("liqo").Get(
			t.Context(), "external-cidr", metav1.GetOptions{},
		)
		if err != nil {
			t.Fatal(err)
		}
		if given, _, _ := unstructured.NestedString(n.Object, "status", "cidr"); given != "" {
			t.Errorf("it has %s", given)
		}
	},
	"node-port-taken": nodePortTaken,
	"no-template": func(t *testing.T) {
		_, err := shared.dynamic(t, "remote").Resource(liqoTemplates).Namespace("liqo").Get(
			t.Context(), "wireguard-server", metav1.GetOptions{},
		)
		if !apierrors.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
	},
	"old-kernel": func(t *testing.T) {
		n, err := shared.client(t, "remote").CoreV1().Nodes().Get(t.Context(), "remote-worker-2", metav1.GetOptions{})
		if err != nil || !strings.HasPrefix(n.Status.NodeInfo.KernelVersion, "5.4.") ||
			n.Status.NodeInfo.KubeletVersion == "" {
			t.Errorf("%v %v", n.Status.NodeInfo, err)
		}
	},
	"remote-controlplane-role-old": func(t *testing.T) {
		r, err := shared.client(t, "remote").RbacV1().ClusterRoles().Get(
			t.Context(), "liqo-remote-controlplane", metav1.GetOptions{},
		)
		if err != nil || strings.Contains(fmt.Sprint(r.Rules), "renews") ||
			!strings.Contains(fmt.Sprint(r.Rules), "resourceslices") {
			t.Errorf("%v %v", r.Rules, err)
		}
	},
	"load-balancer-pending": func(t *testing.T) {
		p := newPair(t, "pending")
		set(t, p.remote["GatewayServer"], "LoadBalancer", "spec", "endpoint", "serviceType")
		p.create(t)
		eventually(t, happens, func() error { return state("local", "Error")(t, p) })
		var s *corev1.Service
		eventually(t, happens, func() (err error) {
			s, err = shared.client(t, "remote").CoreV1().Services(p.space()).Get(t.Context(), "gw-"+p.id, metav1.GetOptions{})
			return errors.Join(err, state("remote", "Error")(t, p))
		})
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer || len(s.Status.LoadBalancer.Ingress) != 0 {
			t.Errorf("%v", s.Status)
		}
	},
	"page":            liqoPage,
	"leftover-tenant": leftoverTenant,
}

func liqoVersions(t *testing.T, local, remote string) {
	for side, want := range map[string]string{"local": local, "remote": remote} {
		all, err := shared.client(t, side).AppsV1().Deployments("liqo").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(all.Items) != 5 {
			t.Fatalf("%d Deployments, %v", len(all.Items), err)
		}
		for _, d := range all.Items {
			if image := d.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+want) {
				t.Errorf("%s: %s", side, image)
			}
		}
	}
}

func webhookExpires(t *testing.T) {
	const day = 24 * time.Hour
	for side, within := range map[string][2]time.Duration{"local": {300 * day, 400 * day}, "remote": {2 * day, 4 * day}} {
		s, err := shared.client(t, side).CoreV1().Secrets("liqo").Get(t.Context(), "liqo-webhook-certs", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(s.Data["tls.crt"])
		if block == nil {
			t.Fatalf("%s: no certificate", side)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(certificate.NotAfter); left < within[0] || left > within[1] {
			t.Errorf("%s: %s are left", side, left)
		}
	}
}

// nodePortTaken verifies that a gateway server whose node port is rejected never gets an endpoint. As in upstream, it
// gets none even when the port is free again.
func nodePortTaken(t *testing.T) {
	p := newPair(t, "taken")
	set(t, p.remote["GatewayServer"], int64(30742), "spec", "endpoint", "nodePort")
	p.create(t)
	client := shared.client(t, "remote")
	eventually(t, happens, func() error {
		_, err := client.AppsV1().Deployments(p.space()).Get(t.Context(), "gw-"+p.id, metav1.GetOptions{})
		return err
	})
	eventually(t, happens, func() error {
		pods, err := client.CoreV1().Pods("liqo").List(
			t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=controller-manager"},
		)
		if err != nil {
			return err
		}
		log, err := client.CoreV1().Pods("liqo").GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err == nil && !strings.Contains(string(log), "provided port is already allocated") {
			err = fmt.Errorf("the log: %s", log)
		}
		return err
	})
	if _, err := client.CoreV1().Services(p.space()).Get(
		t.Context(), "gw-"+p.id, metav1.GetOptions{},
	); !apierrors.IsNotFound(err) {
		t.Errorf("the Service: %v", err)
	}
	if err := absent("remote", "GatewayServer", "status", "endpoint")(t, p); err != nil {
		t.Error(err)
	}
}

// liqoPage verifies the omissions of the page, and that the credential works.
func liqoPage(t *testing.T) {
	local := shared.dynamic(t, "local")
	made, err := local.Resource(pairResources["Configuration"]).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(made.Items) != 0 {
		t.Errorf("%d Configurations, %v", len(made.Items), err)
	}
	slice, err := local.Resource(liqoSlices).Namespace("liqo-tenant-rome").Get(t.Context(), "test", metav1.GetOptions{})
	if err != nil || slice.GetLabels()["liqo.io/replication"] != "" || slice.GetLabels()["liqo.io/remoteID"] != "rome" {
		t.Errorf("the slice: %v %v", slice, err)
	}
	s, err := shared.client(t, "local").CoreV1().Secrets("liqo-tenant-rome").Get(
		t.Context(), "cplane-secret", metav1.GetOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Resource(liqoSlices).Namespace("liqo-tenant-milan").List(
		t.Context(), metav1.ListOptions{},
	); err != nil {
		t.Errorf("slices: %v", err)
	}
	if _, err := theirs.Resource(
		pairResources["Secret"],
	).Namespace("liqo-tenant-milan").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("secrets: %v", err)
	}
	eventually(t, happens, func() error { // as since 1.0.1
		keys, err := shared.client(t, "local").CoreV1().Secrets("liqo-tenant-rome").Get(
			t.Context(), "gw-keys", metav1.GetOptions{},
		)
		if err == nil && keys.Labels["networking.liqo.io/gateway-resource"] != "true" {
			err = errors.New("gw-keys lacks its second label")
		}
		return err
	})
}

func leftoverTenant(t *testing.T) {
	p := newPair(t, "milan")
	p.make(t, "remote", p.remote["Namespace"])
	tenant := p.object("Namespace", map[string]any{"clusterID": "milan", "authzPolicy": "TolerateNoHandshake"})
	tenant.SetGroupVersionKind(liqoTenants.GroupVersion().WithKind("Tenant"))
	tenant.SetName("my-tenant")
	_, err := p.clients["remote"].Resource(liqoTenants).Namespace(p.space()).Create(
		t.Context(), tenant, metav1.CreateOptions{},
	)
	if err == nil || !strings.Contains(err.Error(), "my-tenant") {
		t.Errorf("a second my-tenant: %v", err)
	}
	tenant.SetName("milan")
	if _, err := p.clients["remote"].Resource(liqoTenants).Namespace(p.space()).Create(
		t.Context(), tenant, metav1.CreateOptions{},
	); err != nil {
		t.Errorf("another name: %v", err)
	}
}
