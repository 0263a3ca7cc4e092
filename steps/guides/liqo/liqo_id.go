package liqo

import (
	"context"
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/util/validation"

	"carrick/cluster/clean"
	"carrick/steps"
)

// usualTenantPrefix is the prefix of liqoctl's names of tenant namespaces.
const usualTenantPrefix = "liqo-tenant-"

func soundID(ctx context.Context, e steps.Env) steps.Result {
	another := "install Liqo on the " + e.SideName() +
		" anew, with a --cluster-id of lower-case letters, digits and dashes that no other cluster has: " + liqoInstallPage
	m, err := idMap(ctx, e)
	if found, _ := idMaps(ctx, e); steps.IsAbsent(err) && len(found) > 0 {
		fix := fmt.Sprintf("under answers in %s write\n  %s.liqo-namespace: NAME", e.LinkFile(), e.SideName())
		return steps.Failed(err.Error(), fix)
	}
	if steps.IsAbsent(err) {
		return steps.Failed("no ConfigMap has the label "+idMapLabel+", which Liqo's cluster id stands in", another)
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
				"the cluster id %q in %s is none that Liqo takes: at most 63 lower-case letters, digits and dashes, with no dash "+
					"at either end",
				clean.Text(id), where,
			),
			another,
		)
	}
	if name := usualTenantPrefix + id; len(name) > apivalidation.DNS1123LabelMaxLength && peerNamespace(e) == name {
		return steps.Failed(
			fmt.Sprintf(
				"the cluster id %s has %d characters: liqoctl's name for its tenant namespace on the %s, %s, would have %d, and "+
					"%d is the limit",
				id, len(id), e.PeerName(), name, len(name), apivalidation.DNS1123LabelMaxLength,
			),
			fmt.Sprintf(
				"under answers in %s write\n  %s.tenant-namespace: NAME\nwith a shorter name of your own; or take an id of %d "+
					"characters at most",
				e.LinkFile(), e.PeerName(), apivalidation.DNS1123LabelMaxLength-len(usualTenantPrefix),
			),
		)
	}
	peer, err := peerID(e)
	switch {
	case steps.IsAbsent(err):
		return steps.Passed("it is %s; the %s's is not known yet", id, e.PeerName())
	case err != nil:
		return steps.Errored(err)
	case peer == id:
		return steps.Failed(fmt.Sprintf("both clusters have the id %s", id),
			"install Liqo on one of the two anew, with a --cluster-id that no other cluster has (peerings of that one "+
				"end first): "+liqoInstallPage)
	}
	return steps.Passed("it is %s; the %s is %s", id, e.PeerName(), peer)
}
