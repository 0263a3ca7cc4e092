package liqo

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
	"carrick/steps/check"
)

func networkChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "configuration", Title: "A Configuration has the peer's networks", On: steps.Both,
			Needs: []string{"tenant-namespace"}, FixedBy: "${side}-configuration",
			Why: "Liqo accepts wrong or duplicate ranges, but then routes no traffic; the published guide shows only one of " +
				"the two required lists.",
			References: []string{
				"liqotech/liqo: docs/advanced/peering/inter-cluster-network.md",
				"liqotech/liqo: pkg/utils/getters/k8sGetters.go (multiple Configurations found)",
				"liqotech/liqo: pkg/liqo-controller-manager/networking/external-network/configuration/label.go",
			},
			Run: configurationHolds,
		},
		{
			Name: "configuration-ready", Title: "Liqo has mapped the peer's networks", On: steps.Both,
			Needs: []string{"configuration"}, Timeout: time.Minute,
			Why: "Liqo remaps ranges that overlap with this cluster's ranges, and sets up no gateway until the mapping " +
				"is complete.",
			References: []string{
				"liqotech/liqo: pkg/liqo-controller-manager/networking/utils/configuration.go",
				"liqotech/liqo: pkg/liqo-controller-manager/networking/external-network/configuration/configuration_controller.go",
			},
			Run: configurationReady,
		},
	}
}

// inTenant returns the beginning of a kubectl command for this side's tenant namespace.
func inTenant(e steps.Env) string {
	return e.Kubectl() + " -n " + steps.Quoted(tenantNamespace(e)) + " "
}

func placeOf(o *unstructured.Unstructured) string { return o.GetNamespace() + "/" + o.GetName() }

func placesOf(objs []*unstructured.Unstructured) string {
	var out []string
	for _, o := range objs {
		out = append(out, placeOf(o))
	}
	slices.Sort(out)
	return check.OrNone(out)
}

// peerConfigurations returns the Configurations that are labelled with the peer's cluster id. It searches the whole
// cluster, because Liqo accepts only one Configuration per peer and cluster. If that is forbidden, it searches only the
// tenant namespace.
func peerConfigurations(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	sel, err := ofPeer(e)
	if err != nil {
		return nil, err
	}
	found, err := living(ctx, e, configurations, "", sel)
	if apierrors.IsForbidden(err) {
		return living(ctx, e, configurations, tenantNamespace(e), sel)
	}
	return found, err
}

func configurationHolds(ctx context.Context, e steps.Env) steps.Result {
	found, err := peerConfigurations(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	ns := tenantNamespace(e)
	if len(found) == 0 {
		return noConfiguration(ctx, e)
	}
	if len(found) > 1 {
		return steps.Failed(
			fmt.Sprintf(
				"%d Configurations have the peer's id, but Liqo accepts only one: %s", len(found), placesOf(found),
			),
			deleteOthers(e, "configurations.networking.liqo.io", found),
		)
	}
	if found[0].GetNamespace() != ns {
		return steps.Failed(fmt.Sprintf("Configuration %s is not in the tenant namespace %s", placeOf(found[0]), ns),
			deleteOthers(e, "configurations.networking.liqo.io", found)+"    # then "+e.ApplyStep("network"))
	}
	return rangesAgree(e, found[0])
}

// deleteOthers returns commands that delete the objects in found, except the first object in the tenant namespace.
func deleteOthers(e steps.Env, kind string, found []*unstructured.Unstructured) string {
	var out []string
	kept := false
	for _, o := range found {
		if !kept && o.GetNamespace() == tenantNamespace(e) {
			kept = true
			continue
		}
		out = append(out, e.Kubectl()+" -n "+steps.Quoted(o.GetNamespace())+" delete "+kind+" "+steps.Quoted(o.GetName()))
	}
	return strings.Join(out, "\n")
}

// noConfiguration returns the verdict for the case where no Configuration is labelled with the peer's cluster id.
// Either the tenant namespace has no Configuration, or its Configuration has no such label.
func noConfiguration(ctx context.Context, e steps.Env) steps.Result {
	ns := tenantNamespace(e)
	found, err := living(ctx, e, configurations, ns, "")
	if err != nil {
		return steps.Errored(err)
	}
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(found) == 0 {
		return steps.Undone(
			fmt.Sprintf("namespace %s has no Configuration, so Liqo lacks the address ranges of %s", ns, id),
		)
	}
	return steps.Failed(
		fmt.Sprintf(
			"Configuration %s lacks the label %s=%s. Liqo rejects it and only logs the error", placeOf(found[0]), remoteIDLabel,
			id,
		),
		"",
	)
}

// ranges contains the pod CIDRs and external CIDRs of one cluster.
type ranges struct{ pods, external []string }

func rangesOf(f steps.Facts) (r ranges, err error) {
	if r.pods, err = f.List("pod-cidrs"); err != nil {
		return r, err
	}
	r.external, err = f.List("external-cidrs")
	return r, err
}

func (r ranges) String() string {
	return "pods " + check.OrNone(r.pods) + ", external " + check.OrNone(r.external)
}

// sameRanges reports whether two lists contain the same networks, in any order.
func sameRanges(a, b []string) bool { return slices.Equal(plainRanges(a), plainRanges(b)) }

// ownInstead reports whether a Configuration contains this side's own ranges (own) instead of the peer's ranges.
func ownInstead(says, own, peer []string) bool {
	return sameRanges(says, own) && !sameRanges(own, peer)
}

func plainRanges(cidrs []string) []string {
	var out []string
	for _, c := range cidrs {
		if p, err := netip.ParsePrefix(c); err == nil {
			c = p.Masked().String()
		}
		out = append(out, c)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func rangesAgree(e steps.Env, o *unstructured.Unstructured) steps.Result {
	peer, err := rangesOf(e.Peer)
	if err != nil {
		return steps.Errored(err)
	}
	own, err := rangesOf(e.Own)
	if err != nil {
		return steps.Errored(err)
	}
	says := ranges{stringsAt(o, "spec", "remote", "cidr", "pod"), stringsAt(o, "spec", "remote", "cidr", "external")}
	name := "Configuration " + placeOf(o)
	switch {
	case len(says.pods) == 0 || len(says.external) == 0:
		return steps.Failed(
			fmt.Sprintf(
				"%s has %s. Both lists must be filled; the %s has %s", name, says, e.PeerName(), peer,
			),
			"",
		)
	case sameRanges(says.pods, peer.pods) && sameRanges(says.external, peer.external):
		return steps.Passed("%s has %s, which matches the %s", name, says, e.PeerName())
	case sameRanges(says.pods, peer.external) && sameRanges(says.external, peer.pods):
		return steps.Failed(
			fmt.Sprintf("%s has the two lists swapped: %s. The %s has %s", name, says, e.PeerName(), peer), "",
		)
	case ownInstead(says.pods, own.pods, peer.pods) || ownInstead(says.external, own.external, peer.external):
		return steps.Failed(
			fmt.Sprintf(
				"%s has the %s's own ranges (%s). The Configurations of the two sides are swapped", name, e.SideName(), says,
			),
			"",
		)
	}
	return steps.Failed(
		fmt.Sprintf(
			"%s has %s, but the %s has %s. The ranges are mistyped, or the %s was reinstalled", name, says, e.PeerName(), peer,
			e.PeerName(),
		),
		"",
	)
}
