package liqo

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

func networksKnown(ctx context.Context, e steps.Env) steps.Result {
	ns, err := liqoSpace(e)
	if err != nil {
		return steps.Errored(err)
	}
	logs := e.Kubectl() + " -n " + ns +
		" logs -l app.kubernetes.io/name=ipam    # liqo-ipam assigns the ranges; see also: " +
		e.Kubectl() + " -n " + ns + " get networks.ipam.liqo.io"
	var known []string
	var waits *unstructured.Unstructured
	for _, kind := range []string{"pod-cidr", "external-cidr"} {
		found, err := ownNetworks(ctx, e, kind)
		if err != nil {
			return steps.Errored(err)
		}
		if len(found) == 0 {
			return steps.Failed(fmt.Sprintf("no Network in %s has the label %s=%s", ns, networkTypeLabel, kind),
				withValue(ctx, e, "networking.enabled=true")+
					"    # the chart creates the Network; set the cluster's ranges with ipam.podCIDR and ipam.serviceCIDR")
		}
		if kind == "external-cidr" && len(found) > 1 {
			return steps.Failed(
				fmt.Sprintf(
					"%d Networks in %s have the label %s=%s, but Liqo accepts only one: %s", len(found), ns, networkTypeLabel, kind,
					check.OrNone(names(found)),
				),
				e.Kubectl()+" -n "+ns+" delete networks.ipam.liqo.io NAME    # the Network that the chart did not create",
			)
		}
		for _, n := range found {
			if text(n, "status", "cidr") == "" {
				waits = n
			}
			known = append(known, kind+" "+clean.Text(text(n, "status", "cidr")))
		}
	}
	if waits != nil {
		return steps.Waits(
			waits.GetCreationTimestamp().Time, "Network %s requests %s and has no range yet (status.cidr)", waits.GetName(),
			clean.Text(text(waits, "spec", "cidr")),
		).Or(logs)
	}
	return steps.Passed("%s", check.OrNone(known))
}

type span struct {
	what string
	netip.Prefix
}

func (s span) String() string { return s.what + " " + s.Prefix.String() }

// spansOf parses CIDRs. It omits invalid CIDRs, because other checks report them.
func spansOf(what string, cidrs []string) []span {
	var out []span
	for _, c := range cidrs {
		if p, err := netip.ParsePrefix(c); err == nil {
			out = append(out, span{what, p.Masked()})
		}
	}
	return out
}

// ownSpans returns the address ranges of this cluster's own Liqo Networks.
func ownSpans(ctx context.Context, e steps.Env) ([]span, error) {
	ns, err := liqoSpace(e)
	if err != nil {
		return nil, err
	}
	found, err := living(ctx, e, networks, ns, networkTypeLabel)
	if err != nil {
		return nil, err
	}
	var out []span
	for _, n := range found {
		out = append(out, spansOf(n.GetLabels()[networkTypeLabel], []string{text(n, "status", "cidr")})...)
	}
	return out, nil
}

func peerSpans(e steps.Env) ([]span, error) {
	pods, err := e.Peer.List("pod-cidrs")
	if err != nil {
		return nil, err
	}
	external, err := e.Peer.List("external-cidrs")
	if err != nil {
		return nil, err
	}
	return append(spansOf("pod-cidr", pods), spansOf("external-cidr", external)...), nil
}

// seenSpans returns the ranges to which Liqo maps the peer's networks on this side. It returns no ranges if Liqo has
// not assigned them yet.
func seenSpans(ctx context.Context, e steps.Env) ([]span, error) {
	found, err := peeringObjects(ctx, e, configurations)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return append(spansOf("pod-cidr", stringsAt(found[0], "status", "remote", "cidr", "pod")),
		spansOf("external-cidr", stringsAt(found[0], "status", "remote", "cidr", "external"))...), nil
}

// overlapping describes each range in theirs that overlaps with a range in ours. free contains the other ranges in
// theirs.
func overlapping(theirs, ours []span) (words []string, free []span) {
	for _, t := range theirs {
		i := slices.IndexFunc(ours, func(o span) bool { return o.Overlaps(t.Prefix) })
		if i < 0 {
			free = append(free, t)
			continue
		}
		words = append(words, fmt.Sprintf("%s with this side's %s", t, ours[i]))
	}
	return words, free
}

type reservedAddress struct {
	what string
	addr netip.Addr
}

// tunnelFree returns the addresses that must not be routed into the tunnel: the addresses of the cluster's physical
// nodes and of its API server.
func tunnelFree(ctx context.Context, e steps.Env) ([]reservedAddress, error) {
	nodes, err := physicalNodes(ctx, e)
	if err != nil {
		return nil, err
	}
	var out []reservedAddress
	add := func(what, address string) {
		if a, err := netip.ParseAddr(address); err == nil && !a.IsLoopback() {
			out = append(out, reservedAddress{what, a.Unmap()})
		}
	}
	for _, n := range nodes {
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
				add("node "+n.Name, a.Address)
			}
		}
	}
	servers, err := check.List[discoveryv1.EndpointSlice](
		ctx, e.Cluster, check.EndpointSlices, "default",
		cluster.Selector{Labels: discoveryv1.LabelServiceName + "=kubernetes"},
	)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		for _, p := range s.Endpoints {
			for _, a := range p.Addresses {
				add("the API server", a)
			}
		}
	}
	if u, err := url.Parse(e.Cluster.Server()); err == nil {
		add("the API server", u.Hostname())
	}
	return out, nil
}

func remapped(ctx context.Context, e steps.Env) steps.Result {
	var own, theirs, seen []span
	var here []reservedAddress
	err := check.Together(
		func() (err error) { own, err = ownSpans(ctx, e); return err },
		func() (err error) { theirs, err = peerSpans(e); return err },
		func() (err error) { seen, err = seenSpans(ctx, e); return err },
		func() (err error) { here, err = tunnelFree(ctx, e); return err },
	)
	if err != nil {
		return steps.Errored(err)
	}
	words, reached := overlapping(theirs, own)
	if len(seen) > 0 {
		reached = seen
	}
	var covered []string
	var reserve []string
	for _, s := range reached {
		for _, p := range here {
			if s.Contains(p.addr) {
				covered = append(covered, fmt.Sprintf("%s contains %s at %s", s, p.what, p.addr))
				reserve = append(reserve, netip.PrefixFrom(p.addr, p.addr.BitLen()).String())
			}
		}
	}
	if len(covered) > 0 {
		for _, o := range own { // Helm replaces lists, so the new list must contain the existing entries
			if o.what == "reserved" {
				reserve = append(reserve, o.Prefix.String())
			}
		}
		slices.Sort(reserve)
		return steps.Warned(
			fmt.Sprintf("the %s's %s. Traffic to these addresses goes into the tunnel", e.PeerName(), some(covered)),
			withValue(ctx, e, "ipam.reservedSubnets={"+strings.Join(slices.Compact(reserve), ",")+"}")+
				"    # preferably reserve the nodes' whole subnet; Liqo avoids only ranges that are reserved before the step "+
				"network",
		)
	}
	switch {
	case len(words) == 0:
		return steps.Passed("the %s's ranges do not overlap with this side's", e.PeerName())
	case len(seen) > 0:
		return steps.Passed("the %s's ranges overlap: %s. Liqo maps them to %s", e.PeerName(), some(words), spanWords(seen))
	}
	return steps.Passed(
		"the %s's ranges overlap: %s. Liqo remaps them automatically", e.PeerName(),
		some(words),
	)
}

func spanWords(spans []span) string {
	var out []string
	for _, s := range spans {
		out = append(out, s.String())
	}
	return strings.Join(out, ", ")
}
