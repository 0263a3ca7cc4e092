package liqo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"carrick/steps"
	"carrick/steps/check"
)

// connected reports whether the gateway of one side reports the tunnel as up. f contains the facts of that side.
func connected(f steps.Facts) bool {
	v, err := f.Text("connection")
	return err == nil && v == "Connected"
}

func clientAddress(ctx context.Context, e steps.Env) steps.Result {
	t, err := gatewayTargetOf(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if t.host == "" {
		return steps.Skipped("the GatewayClient has no address")
	}
	addrs := []netip.Addr{}
	if ip, notIP := netip.ParseAddr(t.host); notIP == nil {
		addrs = append(addrs, ip)
	} else {
		addrs, err = check.Resolve(ctx, t.host)
		if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
			return steps.Warned(
				t.host+" does not resolve on this machine, but may resolve in the cluster",
				podCommand(e, "nslookup "+steps.Quoted(t.host)),
			)
		}
		if err != nil {
			return steps.Errored(err)
		}
	}
	for _, ip := range addrs {
		if r := judgeTarget(e, t.host, ip.Unmap()); r.Status != steps.Pass {
			return r
		}
	}
	return steps.Passed("%s%s", t.host, resolvedTo(t.host, addrs))
}

func resolvedTo(host string, addrs []netip.Addr) string {
	if len(addrs) == 0 || addrs[0].String() == host {
		return ""
	}
	return fmt.Sprintf(", which resolves to %s on this machine", addrs[0])
}

// carrierPrefix is the shared address space of carrier-grade NAT (RFC 6598).
var carrierPrefix = netip.MustParsePrefix("100.64.0.0/10")

func judgeTarget(e steps.Env, host string, ip netip.Addr) steps.Result {
	fix := "set network.address to an address of the " + e.PeerName() + " that the " + e.SideName() +
		" can reach, or set network.server to " + e.SideName() + "; then: " + e.ApplyStep("tunnel")
	switch {
	case ip.IsLoopback():
		if server, err := e.Peer.Text(check.ServerFact); err == nil && check.OnLoopback(server) {
			return steps.Passed(
				"%s is a loopback address, like that of the %s's API server. Both clusters run on one machine", host, e.PeerName(),
			)
		}
		return steps.Warned(host+" is a loopback address, so other machines cannot reach it", fix)
	case ip.IsUnspecified(), ip.IsMulticast():
		return steps.Warned(host+" is not a unicast address", fix)
	case ip.IsLinkLocalUnicast():
		return steps.Warned(host+" is a link-local address, which is not routed", fix)
	}
	for _, fact := range []string{"service-cidrs", "pod-cidrs"} {
		if in := rangeWith(e.Peer, fact, ip); in != "" {
			return steps.Warned(
				fmt.Sprintf(
					"%s is in %s, a range inside the %s's cluster that is not reachable from outside", host, in, e.PeerName(),
				),
				fix,
			)
		}
	}
	if (ip.IsPrivate() || carrierPrefix.Contains(ip)) && !connected(e.Own) {
		return steps.Warned(
			fmt.Sprintf(
				"%s is a private address. The %s can reach it only if a route exists between the two networks, such as a VPN", host,
				e.SideName(),
			),
			"ping -c 1 "+host+"    # on a node of the "+e.SideName()+"; if no reply arrives, "+fix,
		)
	}
	return steps.Passed("%s", host)
}

// rangeWith returns the first CIDR that contains ip, or "" if none does. fact is the name of a fact that lists CIDRs.
func rangeWith(f steps.Facts, fact string, ip netip.Addr) string {
	all, _ := f.List(fact)
	at := slices.IndexFunc(all, func(c string) bool {
		p, err := netip.ParsePrefix(c)
		return err == nil && p.Contains(ip)
	})
	if at < 0 {
		return ""
	}
	return all[at]
}

// podCommand returns the kubectl command that runs command in a temporary pod in the tenant namespace.
func podCommand(e steps.Env, command string) string {
	return inTenant(e) + "run carrick-look --rm -it --restart=Never --image=busybox -- " + command
}
