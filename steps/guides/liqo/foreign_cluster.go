package liqo

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
	"carrick/steps/check"
)

// foreignConditions maps each condition of a ForeignCluster to the check that gives details.
var foreignConditions = map[string]string{
	"APIServerStatus":                "peer-api-reachable",
	"NetworkConfigurationStatus":     "configuration-ready",
	"NetworkGatewayPresence":         "gateways",
	"NetworkGatewayServerStatus":     "gateway-up",
	"NetworkGatewayClientStatus":     "gateway-up",
	"NetworkConnectionStatus":        "connection",
	"AuthTenantStatus":               "tenant",
	"AuthIdentityControlPlaneStatus": "control-plane",
	"OffloadingVirtualNodeStatus":    "virtual-node",
	"OffloadingNodeStatus":           "virtual-node",
}

func foreignClusterHealthy(ctx context.Context, e steps.Env) steps.Result {
	fc, err := foreignCluster(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if fc == nil {
		return steps.Waits(
			time.Time{}, "the ForeignCluster for the %s does not exist yet. Liqo creates it from the objects of the peering",
			e.PeerName(),
		)
	}
	var bad, pending, lacking, good, closer []string
	var moving []condition // all conditions of the modules that have a bad condition
	for _, m := range usedModules(e) {
		all := conditions(fc, slices.Concat(m.fields, []string{"conditions"})...)
		if on, _, _ := unstructured.NestedBool(fc.Object, slices.Concat(m.fields, []string{"enabled"})...); m.needed && !on {
			lacking = append(lacking, "module "+m.name+" is not enabled for this peering yet")
		}
		for _, c := range all {
			said := strings.TrimSpace(c.kind + " is " + cmp.Or(c.status, "None"))
			switch c.status {
			case "Established", "Ready":
				good = append(good, c.kind)
				continue
			case "Error", "NotReady", "SomeNotReady":
				bad, moving = append(bad, strings.TrimSpace(said+" "+bracketed(c.why()))), append(moving, all...)
			default:
				pending = append(pending, said)
			}
			if name := foreignConditions[c.kind]; name != "" && !slices.Contains(closer, name) {
				closer = append(closer, name)
			}
		}
	}
	look := "carrick check " + e.LinkFile() + " --only " + strings.Join(closer, ",")
	switch name := fc.GetName(); {
	case len(bad) > 0:
		// Once a Configuration exists, Liqo reports NotReady while the gateway and the Connection are missing or
		// starting (liqotech/liqo v1.2.0: pkg/liqo-controller-manager/core/foreigncluster-controller/status.go). Liqo
		// rewrites such a condition at every reconciliation, so the oldest condition of the module shows how long the
		// state has lasted.
		return steps.Waits(firstSet(fc, moving), "ForeignCluster %s: %s", name, strings.Join(bad, "; ")).Or(look)
	case len(pending) > 0:
		return steps.Waits(time.Time{}, "ForeignCluster %s: %s", name, strings.Join(pending, "; ")).Or(look)
	case len(lacking) > 0:
		return steps.Waits(time.Time{}, "ForeignCluster %s: %s", name, strings.Join(lacking, "; "))
	}
	return steps.Passed("ForeignCluster %s, role %s: %s", fc.GetName(), text(fc, "status", "role"), check.OrNone(good))
}

func bracketed(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// foreignCluster returns the ForeignCluster of the other side, or nil if there is none yet.
func foreignCluster(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	id, err := peerID(e)
	if err != nil {
		return nil, err
	}
	found, err := living(ctx, e, foreignClusters, "", "")
	if err != nil {
		return nil, err
	}
	for _, fc := range found {
		if text(fc, "spec", "clusterID") == id {
			return fc, nil
		}
	}
	return nil, nil
}

type foreignModule struct {
	name   string
	fields []string
	needed bool // this side has objects of the peering in this module
}

// usedModules returns the modules that the peering uses according to the answers. In a declarative peering, a consumer
// normally has no objects in the module authentication, and a provider has none in the module offloading.
func usedModules(e steps.Env) []foreignModule {
	part := func(name string, needed bool) foreignModule {
		return foreignModule{name, []string{"status", "modules", name}, needed}
	}
	out := []foreignModule{
		{"", []string{"status"}, false},
		part("authentication", e.Side == steps.Remote),
		part("offloading", e.Side == steps.Local),
	}
	if joins(e) {
		out = append(out, part("networking", true))
	}
	return out
}
