package liqo

import (
	"context"
	"fmt"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// usedKinds returns the Liqo resources that the guide reads or writes with the current answers.
func usedKinds(e steps.Env) []schema.GroupVersionResource {
	used := []schema.GroupVersionResource{
		foreignClusters, tenants, identities, resourceSlices, namespaceMaps, namespaceOffloadings, quotas, virtualNodes,
	}
	if joins(e) {
		used = append(
			used, networks, configurations, connections, gatewayClients, gatewayServers, publicKeys, clientTemplates,
			serverTemplates,
		)
	}
	return used
}

func kindsServed(ctx context.Context, e steps.Env) steps.Result {
	used := usedKinds(e)
	results := make([]steps.Result, len(used))
	looks := make([]func() error, len(used))
	for i, gvr := range used {
		looks[i] = func() error {
			results[i] = check.Served(ctx, e.Cluster, gvr.GroupResource().String(), gvr.Version, "")
			return nil
		}
	}
	_ = check.Together(looks...) // none of them returns an error
	var bad []string
	absent := 0
	for _, r := range results {
		switch {
		case r.Status == steps.Fail:
			bad = append(bad, r.Found)
			if strings.HasPrefix(r.Found, "there is no") {
				absent++
			}
		case r.Status != steps.Pass:
			return r
		}
	}
	install := "install Liqo 1.2 on the " + e.SideName() + ", with a --cluster-id that no other cluster has: " +
		liqoInstallPage
	switch {
	case absent == len(used):
		return steps.Failed("none of Liqo's kinds exist: Liqo is not installed", install)
	case len(bad) > 0:
		return steps.Failed(
			fmt.Sprintf("%d of the %d Liqo kinds that a peering uses are not served: %s", len(bad), len(used), some(bad)),
			e.Kubectl()+" get crds | grep liqo.io    # Liqo before 1.0 served v1alpha1. To upgrade: "+liqoInstallPage,
		)
	}
	return steps.Passed("all %d Liqo kinds that a peering uses are served", len(used))
}

// some joins the first three items of words and states the number of the others.
func some(words []string) string {
	const most = 3
	if more := len(words) - most; more > 0 {
		return strings.Join(words[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(words, "; ")
}
