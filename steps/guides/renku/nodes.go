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
			Name: "nodes", Title: "A node can run sessions", On: steps.Remote, Needs: []string{"signed-in"},
			Why: "Without a ready node with matching platform, labels and taints, sessions stay Pending; Renku's " +
				"notebooks.sessionAffinity and sessionTolerations apply, too.",
			References: []string{
				page,
				"SwissDataScienceCenter/renku: helm-chart/renku/values.yaml (notebooks.sessionAffinity, " +
					"notebooks.sessionTolerations)",
			},
			Run: nodesFit,
		},
		{
			Name: "node-purpose", Title: "A node has the label that sessions require", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "The published guide says that sessions need nodes with renku.io/node-purpose=user, but only a " +
				"notebooks.sessionAffinity in Renku (not its default) enforces it.",
			References: []string{"SwissDataScienceCenter/renku: helm-chart/renku/values.yaml (notebooks.sessionAffinity)"},
			Run:        nodePurpose,
		},
		{
			Name: "capacity", Title: "The largest class fits on one node", On: steps.Remote, Needs: []string{"nodes"},
			Why: "A session that is larger than every node never starts. A login proxy and a git proxy next to it require " +
				"about 100m CPU and 150Mi.",
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
		found := "no node can run sessions: " + strings.Join(others, "; ")
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
			found+"; "+shut+" has the labels of the session nodes and the taint "+key+", which sessions do not tolerate",
			"answer nodes.tolerations with "+key+
				"if Renku's notebooks.sessionTolerations or the resource classes tolerate it; otherwise: "+e.Kubectl()+
				" taint node "+shut+
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
			return steps.Skipped(
				"nodes.labels is empty, and Renku's notebooks.sessionAffinity is unknown: %s", failure.Explain(err),
			)
		}
		return steps.Skipped(
			"sessions require no label: neither nodes.labels nor Renku's notebooks.sessionAffinity names one (Renku's default)",
		)
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
				"Renku's notebooks.sessionAffinity requires nodes with "+affinityWords(affinity)+", but no node matches",
				e.Kubectl()+" label node NODE "+purposeLabel+"=user    # or the label that it requires",
			)
		}
		return anyLabelled(e, liked, want, affinityWords(affinity)+", as Renku's notebooks.sessionAffinity requires")
	}
	r := anyLabelled(e, nodes, want, strings.Join(want, " and "))
	if others := elsewhere(ctx, e, nodes, want); known && r.Status == steps.Pass && len(others) > 0 {
		return steps.Warned(
			fmt.Sprintf(
				"sessions also run on %s: Renku's notebooks.sessionAffinity does not require %s", someNodes(others),
				strings.Join(want, " and "),
			),
			"set notebooks.sessionAffinity in Renku's values (it applies to all its sessions, including local ones), or taint "+
				"those nodes; to allow sessions there, answer nodes.labels: []",
		)
	}
	return r
}

// anyLabelled verifies that at least one of the nodes has the labels in want.
func anyLabelled(e steps.Env, nodes []*corev1.Node, want []string, what string) steps.Result {
	n := 0
	for _, node := range nodes {
		if hasLabels(node, want) {
			n++
		}
	}
	if n == 0 {
		return steps.Failed(
			"no node has "+strings.Join(want, " and "), e.Kubectl()+" label node NODE "+strings.Join(want, " "),
		)
	}
	return steps.Passed("%d nodes match: %s", n, what)
}

func hasLabels(n *corev1.Node, want []string) bool {
	return !slices.ContainsFunc(want, func(l string) bool {
		k, v, _ := strings.Cut(l, "=")
		got, ok := n.Labels[k]
		return !ok || got != v
	})
}

// elsewhere returns the nodes without these labels that sessions can run on anyway. The labels
// are only answers to carrick: Renku does not require them of a node.
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
