package liqonet

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pools lists the networks that CIDRs are allocated from. They are the chart's defaults (deployments/liqo/values.yaml,
// ipam.pools).
var pools = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("172.16.0.0/12"),
}

// networkFinalizer keeps a Network until its CIDR is released.
const networkFinalizer = "network.ipam.liqo.io/finalizer"

// asItIs is the label of the cluster's own Networks, which cannot be remapped.
const asItIs = "ipam.liqo.io/network-not-remapped"

// network contains the fields of a Network (ipam.liqo.io) that this fake reads.
type network struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		CIDR string `json:"cidr"`
	} `json:"spec"`
	Status struct {
		CIDR string `json:"cidr"`
	} `json:"status"`
}

// addresses allocates a CIDR for each Network in order of creation. It releases the CIDRs of Networks that are being
// deleted. Among Networks from the same second, those for pods come first, because Liqo creates them first.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/networking/network-controller/network_controller.go
// (handleNetworkStatus), external-network/configuration/label.go (LabelCIDRTypeValues) and pkg/ipam: ipam.go
// (NetworkAcquire), networks.go and core/node.go.
func (p *Player) addresses(ctx context.Context, all []network) error {
	slices.SortFunc(all, func(a, b network) int {
		return cmp.Or(
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(b.Labels[cidrType], a.Labels[cidrType]),
			cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name),
		)
	})
	var used []netip.Prefix
	for _, n := range all {
		if given, err := netip.ParsePrefix(n.Status.CIDR); err == nil {
			used = append(used, given.Masked())
		}
	}
	var faults []error
	for _, n := range all {
		switch held := slices.Contains(n.Finalizers, networkFinalizer); {
		case n.DeletionTimestamp != nil && held:
			faults = append(faults, p.finalizers(ctx, networks, n.ObjectMeta, without(n.Finalizers, networkFinalizer)))
		case n.DeletionTimestamp != nil || n.Status.CIDR != "" && (held || metav1.GetControllerOf(&n) == nil):
		case !held && metav1.GetControllerOf(&n) != nil:
			faults = append(
				faults, p.finalizers(ctx, networks, n.ObjectMeta, append(slices.Clone(n.Finalizers), networkFinalizer)),
			)
		default:
			given, ok := acquire(n, used)
			if !ok {
				continue // upstream only logs the error
			}
			used = append(used, given)
			faults = append(faults, p.status(ctx, networks, n.Namespace, n.Name, map[string]any{"cidr": given.String()}))
		}
	}
	return errors.Join(faults...)
}

// acquire returns a CIDR for n that does not overlap with used. It returns false if no block of that size is free.
func acquire(n network, used []netip.Prefix) (netip.Prefix, bool) {
	wanted, err := netip.ParsePrefix(n.Spec.CIDR)
	if err != nil {
		return netip.Prefix{}, false
	}
	wanted = wanted.Masked()
	if n.Labels[asItIs] == "true" {
		return wanted, true
	}
	return free(wanted, used)
}

// free returns wanted if it is in a pool and does not overlap with used. Otherwise it returns the first free block of
// the same size in a pool. While it descends into a pool, it prefers the half that is already partly used.
//
// Source: liqotech/liqo v1.2.0, pkg/ipam/core/node.go (allocateNetwork, bestDirection).
func free(wanted netip.Prefix, used []netip.Prefix) (netip.Prefix, bool) {
	if pooled(wanted) && !overlaps(wanted, used) {
		return wanted, true
	}
	if !wanted.Addr().Is4() {
		return netip.Prefix{}, false
	}
	for _, pool := range pools {
		if block, ok := within(pool, wanted.Bits(), used); ok {
			return block, true
		}
	}
	return netip.Prefix{}, false
}

// within returns the first free block in block with the prefix length bits.
func within(block netip.Prefix, bits int, used []netip.Prefix) (netip.Prefix, bool) {
	switch {
	case block.Bits() > bits || slices.Contains(used, block):
		return netip.Prefix{}, false
	case block.Bits() == bits:
		return block, !overlaps(block, used)
	}
	left, right := halves(block)
	if !split(left, used) && split(right, used) {
		left, right = right, left
	}
	if found, ok := within(left, bits, used); ok {
		return found, true
	}
	return within(right, bits, used)
}

// split reports whether part of block is used.
func split(block netip.Prefix, used []netip.Prefix) bool {
	return slices.ContainsFunc(
		used, func(u netip.Prefix) bool { return u.Bits() > block.Bits() && block.Contains(u.Addr()) },
	)
}

func halves(block netip.Prefix) (left, right netip.Prefix) {
	bits := block.Bits() + 1
	return netip.PrefixFrom(block.Addr(), bits), netip.PrefixFrom(address(number(block.Addr())+uint64(1)<<(32-bits)), bits)
}

// pooled reports whether a pool contains block.
func pooled(block netip.Prefix) bool {
	return slices.ContainsFunc(
		pools, func(p netip.Prefix) bool { return p.Bits() <= block.Bits() && p.Contains(block.Addr()) },
	)
}

func overlaps(block netip.Prefix, used []netip.Prefix) bool {
	return slices.ContainsFunc(used, block.Overlaps)
}

func number(a netip.Addr) uint64 {
	bytes := a.As4()
	return uint64(binary.BigEndian.Uint32(bytes[:]))
}

func address(n uint64) netip.Addr {
	var bytes [4]byte
	binary.BigEndian.PutUint32(bytes[:], uint32(n))
	return netip.AddrFrom4(bytes)
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

func (p *Player) finalizers(ctx context.Context, kind resource, of metav1.ObjectMeta, now []string) error {
	return p.merge(ctx, kind, of.Namespace, of.Name, map[string]any{
		"metadata": map[string]any{"finalizers": now, "resourceVersion": of.ResourceVersion},
	})
}
