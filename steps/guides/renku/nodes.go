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
			Why: "Sessions stay Pending unless a ready node matches their platform, labels and tolerations. Renku's " +
				"notebooks.sessionAffinity and sessionTolerations also apply.",
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
			Why: "The published guide requires nodes with renku.io/node-purpose=user, but Renku enforces the label " +
				"only if notebooks.sessionAffinity is set (not by default).",
			References: []string{"SwissDataScienceCenter/renku: helm-chart/renku/values.yaml (notebooks.sessionAffinity)"},
			Run:        nodePurpose,
		},
		{
			Name: "capacity", Title: "The largest resource class fits on one node", On: steps.Remote, Needs: []string{"nodes"},
			Why: "A session that is larger than every node never starts. Its login proxy and git proxy request another 100m " +
				"CPU and 150Mi of memory.",
			Run: capacity,
		},
	}
}

// sessionNodes returns the nodes that can run sessions. others contains a reason for each of the
// other nodes.
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
			return steps.Failed(found, e.Kubectl()+" uncordon "+names[0]+"    # unless the node is under maintenance")
		}
		return steps.Failed(
			found,
			e.Kubectl()+" get nodes --show-labels    # then label or untaint a node, or set nodes.labels and nodes.tolerations",
		)
	}
	found := fmt.Sprintf("%d of %d nodes can run sessions: %s", len(fit), len(fit)+len(others), someNodes(fit))
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	if shut, key := taintedNode(ctx, e, nodes); shut != "" {
		return steps.Warned(
			found+"; "+shut+" has the labels of the session nodes and the taint "+key+", which sessions do not tolerate",
			"set nodes.tolerations to "+key+" if Renku's notebooks.sessionTolerations or the resource classes tolerate this "+
				"taint. Otherwise: "+e.Kubectl()+" taint node "+shut+" "+key+"-",
		)
	}
	return steps.Passed("%s", found)
}

// cordonedNodes returns the quoted names of the cordoned nodes that could otherwise run sessions.
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

// taintedNode returns a node that has the labels of session nodes but that taints exclude. key is
// one of these taints. It returns "" if no such node exists.
func taintedNode(ctx context.Context, e steps.Env, nodes []*corev1.Node) (name, key string) {
	d, err := demanded(ctx, e)
	if err != nil || len(d.labels) == 0 {
		return "", ""
	}
	for _, n := range nodes {
		var keys []string
		for _, t := range n.Spec.Taints {
			// Taints that Kubernetes itself adds are temporary.
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
			"sessions require no node label: nodes.labels is empty, and Renku's notebooks.sessionAffinity requires no label " +
				"(Renku's default)",
		)
	}
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	if affinity != nil {
		matching := slices.DeleteFunc(
			slices.Clone(nodes), func(n *corev1.Node) bool { return !(demand{affinity: affinity}).matchesAffinity(n) },
		)
		if len(matching) == 0 {
			return steps.Failed(
				"Renku's notebooks.sessionAffinity requires nodes with "+affinityWords(affinity)+", but no node matches",
				e.Kubectl()+" label node NODE "+purposeLabel+"=user    # or the label that sessionAffinity requires",
			)
		}
		return anyLabelled(e, matching, want, affinityWords(affinity)+", as Renku's notebooks.sessionAffinity requires")
	}
	r := anyLabelled(e, nodes, want, strings.Join(want, " and "))
	if others := elsewhere(ctx, e, nodes, want); known && r.Status == steps.Pass && len(others) > 0 {
		return steps.Warned(
			fmt.Sprintf(
				"sessions also run on %s: Renku's notebooks.sessionAffinity does not require %s", someNodes(others),
				strings.Join(want, " and "),
			),
			"set notebooks.sessionAffinity in Renku's values (applies to all sessions of Renku, including sessions on the "+
				"local cluster), or taint these nodes. To allow sessions there, set nodes.labels to []",
		)
	}
	return r
}

// anyLabelled returns Fail if no node has all labels in want. Otherwise it returns Pass with the
// number of matching nodes. The parameter what describes these nodes in the finding.
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

// elsewhere returns the nodes that do not have all labels in want but could otherwise run sessions.
// Only the answer nodes.labels requires these labels. Renku does not.
func elsewhere(ctx context.Context, e steps.Env, nodes []*corev1.Node, want []string) (out []*corev1.Node) {
	d, err := demanded(ctx, e)
	if err != nil {
		return nil // the check nodes reports the error
	}
	d.labels = nil
	for _, n := range nodes {
		if !hasLabels(n, want) && d.unfit(n) == "" {
			out = append(out, n)
		}
	}
	return out
}
