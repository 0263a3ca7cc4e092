package liqo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/check"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// configurationReady verifies that Liqo has mapped every range of the peer. Liqo v1.2.0 added the condition
// NetworkCIDRsConfigured. If that condition exists, it must be True.
func configurationReady(ctx context.Context, e steps.Env) steps.Result {
	found, err := peerConfigurations(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(found) != 1 {
		return steps.Skipped("this side does not have exactly one Configuration for the peer (found: %s)", placesOf(found))
	}
	o := found[0]
	var seen []string
	var first *steps.Result
	for _, kind := range []string{"pod", "external"} {
		real, as := stringsAt(o, "spec", "remote", "cidr", kind), stringsAt(o, "status", "remote", "cidr", kind)
		if len(as) == 1 && len(real) > 1 && check.Condition(o, "NetworkCIDRsConfigured") == nil {
			r := firstRangeAlone(ctx, e, o, kind, real)
			first = &r
			continue
		}
		if len(as) != len(real) {
			return withoutRange(
				ctx, e, o,
				fmt.Sprintf(
					"Configuration %s: %d of %d %s ranges are mapped", placeOf(o), len(as), len(real), kind,
				),
			)
		}
		for i := range real {
			seen = append(seen, seenAs(kind, real[i], as[i]))
		}
	}
	if first != nil {
		return *first
	}
	c := check.Condition(o, "NetworkCIDRsConfigured")
	observed, _ := c["observedGeneration"].(int64)
	switch {
	case c != nil && c["status"] != "True":
		return withoutRange(
			ctx, e, o, fmt.Sprintf("Configuration %s: NetworkCIDRsConfigured is %v (%v)", placeOf(o), c["status"], c["reason"]),
		)
	case c != nil && observed != 0 && observed < o.GetGeneration():
		return withoutRange(
			ctx, e, o, fmt.Sprintf("Liqo has not processed the latest change of Configuration %s yet", placeOf(o)),
		)
	}
	return steps.Passed("%s", strings.Join(seen, "; "))
}

// mapsAllSince is the first release that maps all ranges if a peer has several pod ranges or several external ranges.
const mapsAllSince = "1.2.0"

// firstRangeAlone returns the verdict on a Configuration with several ranges of one kind. Before v1.2.0, Liqo maps only
// the first range (liqotech/liqo v1.1.2:
// pkg/liqo-controller-manager/networking/external-network/configuration/configuration_controller.go,
// ForgeConfigurationStatus).
func firstRangeAlone(
	ctx context.Context, e steps.Env, o *unstructured.Unstructured, kind string, real []string,
) steps.Result {
	return steps.Warned(
		fmt.Sprintf("Configuration %s: Liqo before %s maps only the first %s range, %s. Ranges that are not reachable: %s",
			placeOf(o), mapsAllSince, kind, real[0], check.OrNone(real[1:])), upgrade(ctx, e, mapsAllSince),
	)
}

func seenAs(kind, real, as string) string {
	what := "the peer's pod CIDR"
	if kind == "external" {
		what = "the peer's external CIDR"
	}
	if real == as {
		return fmt.Sprintf("%s %s is not remapped", what, real)
	}
	return fmt.Sprintf("%s %s is mapped to %s", what, real, as)
}

// withoutRange returns a waiting verdict that lists the Networks without a range. Liqo creates one
// Network for each range of a Configuration.
func withoutRange(ctx context.Context, e steps.Env, o *unstructured.Unstructured, found string) steps.Result {
	made, err := rangelessNetworks(ctx, e, o)
	if err != nil {
		return steps.Errored(err)
	}
	if len(made) > 0 {
		found += "; no range for Network " + check.OrNone(made) +
			". Either no block of that size is free, or liqo-ipam does not respond"
	}
	fix := inTenant(e) + "get networks.ipam.liqo.io,events"
	if space, err := liqoSpace(e); err == nil {
		fix += "\n" + e.Kubectl() + " -n " + steps.Quoted(space) + " logs deployment/liqo-ipam --tail=20"
	}
	return steps.Waits(latest(o, "NetworkCIDRsConfigured"), "%s", found).Or(fix)
}

// latest returns the later of an object's creation time and the last transition of a condition.
func latest(o *unstructured.Unstructured, kind string) time.Time {
	since := o.GetCreationTimestamp().Time
	at, _ := check.Condition(o, kind)["lastTransitionTime"].(string)
	if t, err := time.Parse(time.RFC3339, at); err == nil && t.After(since) {
		return t
	}
	return since
}

// rangelessNetworks returns the names of a Configuration's Networks that have no range yet.
func rangelessNetworks(ctx context.Context, e steps.Env, o *unstructured.Unstructured) ([]string, error) {
	all, err := living(ctx, e, networks, o.GetNamespace(), "")
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(n *unstructured.Unstructured) bool {
		return !strings.HasPrefix(n.GetName(), o.GetName()+"-") || text(n, "status", "cidr") != ""
	})
	return names(all), nil
}
