package renku

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

func nodeChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "nodes", Title: "a node takes sessions", On: steps.Remote, Needs: []string{"signed-in"},
			Why: "a session without a node that is ready, of its platform, with its labels and taints, stays Pending. " +
				"Renku's own notebooks.sessionAffinity and sessionTolerations hold for remote sessions, too",
			References: []string{
				page,
				"SwissDataScienceCenter/renku: helm-chart/renku/values.yaml (notebooks.sessionAffinity, " +
					"notebooks.sessionTolerations)",
			},
			Run: nodesFit,
		},
		{
			Name: "node-purpose", Title: "the label that sessions ask for is on a node", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "the published guide says that sessions only go to nodes labelled renku.io/node-purpose=user; that is " +
				"so only where Renku's notebooks.sessionAffinity asks for it, which it does not by default",
			References: []string{"SwissDataScienceCenter/renku: helm-chart/renku/values.yaml (notebooks.sessionAffinity)"},
			Run:        nodePurpose,
		},
		{
			Name: "capacity", Title: "the biggest class fits on one node", On: steps.Remote, Needs: []string{"nodes"},
			Why: "a session of a class that is larger than every node never starts. Beside it run a login proxy and a git " +
				"proxy: some 100m CPU and 150Mi",
			Run: capacity,
		},
	}
}

// sessionNodes returns the nodes that can run sessions, and why each of the others cannot.
func sessionNodes(ctx context.Context, e steps.Env) (fit []*corev1.Node, others []string, err error) {
	d, err := demanded(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return nil, nil, err
	}
	for _, n := range nodes {
		if why := d.unfit(n); why != "" {
			others = append(others, n.Name+" "+why)
			continue
		}
		fit = append(fit, n)
	}
	return fit, others, nil
}

func nodesFit(ctx context.Context, e steps.Env) steps.Result {
	fit, others, err := sessionNodes(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(fit) == 0 {
		found := "no node takes sessions: " + strings.Join(others, "; ")
		if len(others) == 0 {
			found = "the cluster has no nodes"
		}
		if names := cordonedNodes(ctx, e); len(names) > 0 {
			return steps.Failed(found, e.Kubectl()+" uncordon "+names[0]+"    # unless it is under maintenance")
		}
		return steps.Failed(
			found,
			e.Kubectl()+" get nodes --show-labels    # then label or untaint one, or answer nodes.labels, nodes.tolerations",
		)
	}
	found := fmt.Sprintf("%d of %d nodes: %s", len(fit), len(fit)+len(others), someNodes(fit))
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	if shut, key := taintedNode(ctx, e, nodes); shut != "" {
		return steps.Warned(
			found+"; "+shut+" has the labels of the nodes for sessions, and the taint "+key+", which sessions don't tolerate",
			"answer nodes.tolerations with "+key+
				", if Renku's notebooks.sessionTolerations or the resource classes have it; else: "+e.Kubectl()+" taint node "+shut+
				" "+key+"-",
		)
	}
	return steps.Passed("%s", found)
}

// cordonedNodes returns the nodes that could run sessions if they were not cordoned.
func cordonedNodes(ctx context.Context, e steps.Env) (names []string) {
	d, err := demanded(ctx, e)
	if err != nil {
		return nil
	}
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return nil
	}
	for _, n := range nodes {
		open := n.DeepCopy()
		open.Spec.Unschedulable = false
		open.Spec.Taints = slices.DeleteFunc(open.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == corev1.TaintNodeUnschedulable
		})
		if n.Spec.Unschedulable && d.unfit(open) == "" {
			names = append(names, steps.Quoted(n.Name))
		}
	}
	return names
}

// taintedNode returns a node that is labelled for sessions and is excluded only by a taint,
// with the taint's key.
func taintedNode(ctx context.Context, e steps.Env, nodes []*corev1.Node) (name, key string) {
	d, err := demanded(ctx, e)
	if err != nil || len(d.labels) == 0 {
		return "", ""
	}
	for _, n := range nodes {
		var keys []string
		for _, t := range n.Spec.Taints {
			// the cluster's own taints are temporary
			if t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
				keys = append(keys, t.Key)
			}
		}
		open := d
		open.tolerated = slices.Concat(keys, d.tolerated)
		if d.unfit(n) != "" && open.unfit(n) == "" {
			for _, k := range keys {
				if !slices.Contains(d.tolerated, k) {
					return n.Name, k
				}
			}
		}
	}
	return "", ""
}

func someNodes(nodes []*corev1.Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return check.Some(names)
}

func nodePurpose(ctx context.Context, e steps.Env) steps.Result {
	affinity, err := renkuAffinity(e)
	known := err == nil
	if err != nil && !steps.IsAbsent(err) {
		return steps.Errored(err)
	}
	want := e.Answers.List("nodes.labels")
	if len(want) == 0 && affinity == nil {
		if !known {
			return steps.Skipped("nodes.labels is empty, and what Renku asks for can't be told: %s", failure.Explain(err))
		}
		return steps.Skipped("sessions ask for no label: neither nodes.labels nor Renku's notebooks.sessionAffinity names " +
			"one, which is Renku's default")
	}
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	if affinity != nil {
		liked := slices.DeleteFunc(
			slices.Clone(nodes), func(n *corev1.Node) bool { return !(demand{affinity: affinity}).liked(n) },
		)
		if len(liked) == 0 {
			return steps.Failed(
				"Renku's notebooks.sessionAffinity asks every session's node for "+affinityWords(affinity)+", and no node has it",
				e.Kubectl()+" label node NODE "+purposeLabel+"=user    # or what it asks for",
			)
		}
		return anyLabelled(e, liked, want, affinityWords(affinity)+", as Renku's notebooks.sessionAffinity asks")
	}
	r := anyLabelled(e, nodes, want, strings.Join(want, " and "))
	if others := elsewhere(ctx, e, nodes, want); known && r.Status == steps.Pass && len(others) > 0 {
		return steps.Warned(
			fmt.Sprintf(
				"sessions go to %s, too: Renku's notebooks.sessionAffinity does not ask for %s", someNodes(others),
				strings.Join(want, " and "),
			),
			"set notebooks.sessionAffinity in Renku's values (it holds for all of its sessions, local ones, too), or taint "+
				"those nodes; or, if they may have sessions, answer nodes.labels: []",
		)
	}
	return r
}

// anyLabelled verifies that at least one of the nodes has the labels of the answers.
func anyLabelled(e steps.Env, nodes []*corev1.Node, want []string, what string) steps.Result {
	n := 0
	for _, node := range nodes {
		if hasLabels(node, want) {
			n++
		}
	}
	if n == 0 {
		return steps.Failed(
			"no node carries "+strings.Join(want, " and "), e.Kubectl()+" label node NODE "+strings.Join(want, " "),
		)
	}
	return steps.Passed("%d of the nodes: %s", n, what)
}

func hasLabels(n *corev1.Node, want []string) bool {
	return !slices.ContainsFunc(want, func(l string) bool {
		k, v, _ := strings.Cut(l, "=")
		got, ok := n.Labels[k]
		return !ok || got != v
	})
}

// elsewhere returns the nodes without these labels on which sessions run anyway, because only
// the answers name the labels.
func elsewhere(ctx context.Context, e steps.Env, nodes []*corev1.Node, want []string) (out []*corev1.Node) {
	d, err := demanded(ctx, e)
	if err != nil {
		return nil // the check nodes reports it
	}
	d.labels = nil
	for _, n := range nodes {
		if !hasLabels(n, want) && d.unfit(n) == "" {
			out = append(out, n)
		}
	}
	return out
}
