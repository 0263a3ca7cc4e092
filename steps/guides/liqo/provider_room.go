package liqo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	requests "k8s.io/component-helpers/resource"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// running is the field selector for the pods that use a node's resources.
const running = "status.phase!=Succeeded,status.phase!=Failed"

func providerRoom(ctx context.Context, e steps.Env) steps.Result {
	asked, err := askedOf(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	consumerID, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	err = check.Together(
		func() (err error) {
			nodes, err = check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
			return err
		},
		func() (err error) {
			pods, err = check.List[corev1.Pod](ctx, e.Cluster, check.Pods, "", cluster.Selector{Fields: running})
			return err
		},
	)
	if err != nil {
		return steps.Errored(err)
	}
	count, have, taken := nodeCapacity(nodes, pods, consumerID)
	var lacks, fits []string
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		want, free := asked[name], have[name]
		free.Sub(taken[name])
		if free.Cmp(want) < 0 {
			total, used := have[name], taken[name]
			lacks = append(
				lacks,
				fmt.Sprintf(
					"%s %s, but only %s is free (%s minus %s requested by other pods)", name, want.String(), free.String(),
					total.String(), used.String(),
				),
			)
			continue
		}
		fits = append(fits, fmt.Sprintf("%s %s", name, free.String()))
	}
	if len(lacks) > 0 {
		return steps.Warned(
			fmt.Sprintf(
				"%s requests more than %s of the %s can provide: %s. Liqo grants the request anyway", consumerID,
				steps.Plural(count, "node"),
				e.SideName(), strings.Join(lacks, "; "),
			),
			"reduce resources.cpu, resources.memory, resources.pods or resources.other, or add nodes to the provider",
		)
	}
	return steps.Passed("free for %s on %s: %s", consumerID, steps.Plural(count, "node"), strings.Join(fits, ", "))
}

// askedOf returns the resources that the consumer requests. It reads them from the consumer's slice, or from the
// answers if no slice exists.
func askedOf(ctx context.Context, e steps.Env) (corev1.ResourceList, error) {
	words := sliceAsks(e.Peer)
	if words == nil {
		asked, err := requested(ctx, e)
		if err != nil {
			return nil, err
		}
		words = map[string]string{}
		all, _ := asked.(map[string]any)
		for name, v := range all {
			words[name] = quantityText(v)
		}
	}
	out := corev1.ResourceList{}
	for name, v := range words {
		q, err := resource.ParseQuantity(v)
		if err != nil {
			return nil, steps.Absent("the requested amount of %s, %q, is not a quantity", name, v)
		}
		out[corev1.ResourceName(name)] = q
	}
	return out, nil
}

// sliceAsks returns the requested resources in the fact slice, or nil if no slice exists.
func sliceAsks(f steps.Facts) map[string]string {
	if f.Field("slice", "name") == nil {
		return nil
	}
	out := map[string]string{}
	for _, name := range []string{"cpu", "memory", "pods"} {
		if v := f.Field("slice", name); v != nil {
			out[name] = quantityText(v)
		}
	}
	for _, more := range steps.ListOf(f.Field("slice", "more")) {
		name, amount, _ := strings.Cut(more, "=")
		out[name] = amount
	}
	return out
}

// nodeCapacity returns the number of nodes that accept pods, their total allocatable resources (have), and the requests
// of the pods on them (taken). It does not count the consumer's own pods, because they are part of the consumer's
// request.
func nodeCapacity(
	nodes []*corev1.Node, pods []*corev1.Pod, consumerID string,
) (count int, have, taken corev1.ResourceList) {
	have, taken = corev1.ResourceList{}, corev1.ResourceList{}
	takes := map[string]bool{}
	for _, n := range nodes {
		if takesPods(n) {
			takes[n.Name] = true
			addTo(have, n.Status.Allocatable)
		}
	}
	for _, p := range pods {
		if !takes[p.Spec.NodeName] || check.Ended(p) || p.Labels[podOriginLabel] == consumerID {
			continue
		}
		addTo(taken, requests.PodRequests(p, requests.PodResourcesOptions{}))
		addTo(taken, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")})
	}
	return len(takes), have, taken
}

func addTo(sum, more corev1.ResourceList) {
	for name, q := range more {
		total := sum[name]
		total.Add(q)
		sum[name] = total
	}
}

// takesPods reports whether a node accepts workload pods: it is ready, physical, not cordoned,
// and not a control-plane node.
func takesPods(n *corev1.Node) bool {
	if n.Labels[nodeTypeLabel] == virtualNodeType || n.Spec.Unschedulable ||
		check.NodeCondition(n, corev1.NodeReady).Status != corev1.ConditionTrue {
		return false
	}
	return !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return (t.Key == "node-role.kubernetes.io/control-plane" || t.Key == "node-role.kubernetes.io/master") &&
			t.Effect != corev1.TaintEffectPreferNoSchedule
	})
}
