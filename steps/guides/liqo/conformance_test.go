package liqo_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/clustertest"
	"carrick/steps/engine"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// example contains the answers for rendering the guide's assets, so that the manifests have as many optional fields as
// possible.
var example = map[string]any{
	"resources.pods": "50", "resources.other": []any{"nvidia.com/gpu=1"},
	"network.load-balancer-ip": "198.51.100.9",
	"offloading.clusters":      []any{"liqo.io/remote-cluster-id=rome"},
}

func TestGolden(t *testing.T) {
	stepstest.Golden(t, liqo.Guide(), assets, "testdata", example)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	folder := stepstest.Upstream(t, "../../..", "liqo", "every asset of Liqo's own kinds")
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) < 16 {
		t.Fatalf("%s holds %d definitions, %v", folder, len(files), err)
	}
	for side, needed := range stepstest.NeededCRDs(t, liqo.Guide(), assets, "testdata", example, files) {
		stepstest.Define(t, box, side, needed...)
	}
	stepstest.Conformance(t, box, liqo.Guide(), assets, "testdata", example)
}

// written contains the properties by which Liqo finds an object.
type written struct {
	Kind, Namespace, Name string
	Labels, Annotations   map[string]string
}

const (
	rid = "liqo.io/remote-cluster-id"
	gw  = "networking.liqo.io/gateway-resource"
)

func peerOf(id string) map[string]string { return map[string]string{rid: id} }

func gatewayOf(id string) map[string]string { return map[string]string{rid: id, gw: "true"} }

func tenantOf(id string) map[string]string {
	return map[string]string{
		rid: id, "liqo.io/tenant-namespace": "true",
		"pod-security.kubernetes.io/enforce": "privileged", "pod-security.kubernetes.io/audit": "privileged",
		"pod-security.kubernetes.io/warn": "privileged",
	}
}

// asLiqoctl and asLiqoctlLater map each action to the objects that it creates. The names must be the names that liqoctl
// uses (liqotech/liqo: pkg/liqoctl), so that liqoctl finds carrick's objects and creates no second ones. The labels
// must be the labels by which Liqo's controllers find the objects.
var (
	asLiqoctl = map[string][]written{
		"consumer-namespace":     {{Kind: "Namespace", Name: "liqo-tenant-rome", Labels: tenantOf("rome")}},
		"provider-namespace":     {{Kind: "Namespace", Name: "liqo-tenant-milan", Labels: tenantOf("milan")}},
		"consumer-configuration": {{"Configuration", "liqo-tenant-rome", "rome", peerOf("rome"), nil}},
		"provider-configuration": {{"Configuration", "liqo-tenant-milan", "milan", peerOf("milan"), nil}},
		"consumer-keys":          {{"Secret", "liqo-tenant-rome", "gw-keys", gatewayOf("rome"), nil}},
		"provider-keys":          {{"Secret", "liqo-tenant-milan", "gw-keys", gatewayOf("milan"), nil}},
		"consumer-server":        {{"GatewayServer", "liqo-tenant-rome", "rome", peerOf("rome"), nil}},
		"provider-server":        {{"GatewayServer", "liqo-tenant-milan", "milan", peerOf("milan"), nil}},
		"consumer-client":        {{"GatewayClient", "liqo-tenant-rome", "rome", peerOf("rome"), nil}},
		"provider-client":        {{"GatewayClient", "liqo-tenant-milan", "milan", peerOf("milan"), nil}},
		// These actions write no objects.
		"consumer-gateway-restart": {},
		"provider-gateway-restart": {},

		"credential-key": {{"Secret", "liqo-tenant-rome", "liqo-controlplane-key-rome", nil, nil}},
		"service-account": {
			{"ServiceAccount", "liqo-tenant-milan", "liqo-controlplane-milan", nil, nil},
			{
				"Secret", "liqo-tenant-milan", "liqo-controlplane-milan-token", nil,
				map[string]string{"kubernetes.io/service-account.name": "liqo-controlplane-milan"},
			},
		},
		"tenant": {{"Tenant", "liqo-tenant-milan", "milan", peerOf("milan"), nil}},
		"resource-slice": {
			{
				"ResourceSlice", "liqo-tenant-rome", "rome",
				map[string]string{rid: "rome", "liqo.io/remoteID": "rome", "liqo.io/replication": "true"},
				map[string]string{"liqo.io/create-virtual-node": "true"},
			},
		},
		"offloaded-namespace": {{Kind: "Namespace", Name: "demo"}},
		"offloading":          {{"NamespaceOffloading", "demo", "offloading", nil, nil}},
	}
	// The actions of asLiqoctlLater require objects of the other side.
	asLiqoctlLater = map[string][]written{
		"consumer-public-key": {{"PublicKey", "liqo-tenant-rome", "rome", gatewayOf("rome"), nil}},
		"provider-public-key": {{"PublicKey", "liqo-tenant-milan", "milan", gatewayOf("milan"), nil}},
		"role-binding": {
			{"RoleBinding", "liqo-tenant-milan", "liqo-binding-liqo-remote-controlplane", peerOf("milan"), nil},
		},
		"certificate-request": {{"CertificateSigningRequest", "", "liqo-controlplane-milan-*", nil, nil}},
		"control-plane": {{
			"Secret", "liqo-tenant-rome", "kubeconfig-controlplane-rome",
			map[string]string{rid: "rome", "liqo.io/identity-type": "ControlPlane"},
			map[string]string{"liqo.io/remote-tenant-namespace": "liqo-tenant-milan"},
		}},
	}
)

func TestNamesAndLabelsAreLiqoctls(t *testing.T) {
	guide := liqo.Guide()
	for _, step := range guide.Steps {
		for _, a := range step.Actions {
			if asLiqoctl[a.Name] == nil && asLiqoctlLater[a.Name] == nil {
				t.Errorf("nothing is said here of action %s", a.Name)
			}
		}
	}
	// In this state no objects exist, so no name comes from an existing object.
	before := stepstest.Stand(t, guide, assets, "testdata", "before")
	for key, v := range map[string]any{"network.address": "198.51.100.7", "network.client-port": 30742} {
		if err := before.Answer(key, v); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, before, asLiqoctl)
	compare(t, stepstest.Stand(t, guide, assets, "testdata", "healthy"), asLiqoctlLater)
}

func compare(t *testing.T, s *engine.Session, want map[string][]written) {
	t.Helper()
	for _, action := range slices.Sorted(maps.Keys(want)) {
		objs, err := s.Render(t.Context(), action)
		if err != nil {
			t.Errorf("%s: %v", action, err)
			continue
		}
		got := []written{}
		for _, o := range objs {
			got = append(got, findable(o))
		}
		for i := range min(len(got), len(want[action])) {
			if ok, _ := filepath.Match(want[action][i].Name, got[i].Name); ok {
				got[i].Name = want[action][i].Name
			}
		}
		if d := cmp.Diff(want[action], got); d != "" {
			t.Errorf("%s (-want +got):\n%s", action, d)
		}
	}
}

// findable returns the properties of an object without carrick's own labels and annotations.
func findable(o *unstructured.Unstructured) written {
	ours := func(m map[string]string) map[string]string {
		out := maps.Clone(m)
		maps.DeleteFunc(out, func(key, _ string) bool {
			return strings.HasPrefix(key, "carrick/") || key == "app.kubernetes.io/managed-by" ||
				key == "app.kubernetes.io/part-of"
		})
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return written{o.GetKind(), o.GetNamespace(), o.GetName(), ours(o.GetLabels()), ours(o.GetAnnotations())}
}
