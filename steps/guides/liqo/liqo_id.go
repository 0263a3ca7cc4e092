package liqo

import (
	"context"
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/util/validation"

	"carrick/cluster/clean"
	"carrick/steps"
)

// usualTenantPrefix is the prefix that liqoctl uses for the names of tenant namespaces.
const usualTenantPrefix = "liqo-tenant-"

func soundID(ctx context.Context, e steps.Env) steps.Result {
	another := "reinstall Liqo on the " + e.SideName() +
		" with a --cluster-id of lower-case letters, digits and dashes that no other cluster has: " + liqoInstallPage
	m, err := idMap(ctx, e)
	if found, _ := idMaps(ctx, e); steps.IsAbsent(err) && len(found) > 0 {
		fix := fmt.Sprintf("under answers in %s, set\n  %s.liqo-namespace: NAME", e.LinkFile(), e.SideName())
		return steps.Failed(err.Error(), fix)
	}
	if steps.IsAbsent(err) {
		return steps.Failed("no ConfigMap has the label "+idMapLabel+", so this cluster has no Liqo cluster id", another)
	}
	if err != nil {
		return steps.Errored(err)
	}
	where, id := "ConfigMap "+m.GetNamespace()+"/"+m.GetName(), text(m, "data", "CLUSTER_ID")
	if id == "" {
		return steps.Failed(where+" has no CLUSTER_ID", another)
	}
	if len(apivalidation.IsDNS1123Label(id)) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"the cluster id %q in %s is not valid. It must have at most 63 lower-case letters, digits and dashes, and must "+
					"not begin or end with a dash",
				clean.Text(id), where,
			),
			another,
		)
	}
	if name := usualTenantPrefix + id; len(name) > apivalidation.DNS1123LabelMaxLength && peerNamespace(e) == name {
		return steps.Failed(
			fmt.Sprintf(
				"the cluster id %s has %d characters. Its default tenant namespace on the %s, %s, would have %d, but the "+
					"limit is %d",
				id, len(id), e.PeerName(), name, len(name), apivalidation.DNS1123LabelMaxLength,
			),
			fmt.Sprintf(
				"under answers in %s, set\n  %s.tenant-namespace: NAME\nto a shorter name, or use a cluster id of at most "+
					"%d characters",
				e.LinkFile(), e.PeerName(), apivalidation.DNS1123LabelMaxLength-len(usualTenantPrefix),
			),
		)
	}
	peer, err := peerID(e)
	switch {
	case steps.IsAbsent(err):
		return steps.Passed("cluster id %s; the %s's cluster id is not known yet", id, e.PeerName())
	case err != nil:
		return steps.Errored(err)
	case peer == id:
		return steps.Failed(fmt.Sprintf("both clusters have the cluster id %s", id),
			"reinstall Liqo on one of the two clusters with a --cluster-id that no other cluster has (remove its "+
				"peerings first): "+
				liqoInstallPage)
	}
	return steps.Passed("cluster id %s; the %s's cluster id is %s", id, e.PeerName(), peer)
}
