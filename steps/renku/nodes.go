package renku

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

const gpuResource = corev1.ResourceName("nvidia.com/gpu")

// What each session needs beside its class: the sign-in proxy and the git
// proxy. Requests of the charts, rounded up.
var (
	sidecarCPU    = resource.MustParse("100m")
	sidecarMemory = resource.MustParse("150Mi")
)

func nodeChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "nodes", Title: "a node takes sessions", On: steps.Remote, Needs: []string{"signed-in"},
			Why: "a session without a node that is ready, of its platform, with its labels and taints, stays Pending",
			Run: nodesFit,
		},
		{
			Name: "node-purpose", Title: "the label that sessions ask for is on a node", On: steps.Remote, Needs: []string{"signed-in"},
			Why: "the published guide says that sessions only go to nodes labelled renku.io/node-purpose=user; that is so only where Renku's notebooks.sessionAffinity asks for it",
			See: []string{"SwissDataScienceCenter/renku: helm-chart/renku/values.yaml (notebooks.sessionAffinity)"},
			Run: nodePurpose,
		},
		{
			Name: "capacity", Title: "the biggest class fits on one node", On: steps.Remote, Needs: []string{"nodes"},
			Why: "a class that is larger than every node never starts",
			Run: capacity,
		},
	}
}

// candidates are the nodes that sessions may go to, and why each other is
// none.
func candidates(ctx context.Context, e steps.Env) (fit []*corev1.Node, others []string, err error) {
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return nil, nil, err
	}
	want, tolerated, arch := e.Answers.List("nodes.labels"), e.Answers.List("nodes.tolerations"), e.Answers.Text("nodes.arch")
	for _, n := range nodes {
		if why := unfit(n, want, tolerated, arch); why != "" {
			others = append(others, n.Name+" "+why)
			continue
		}
		fit = append(fit, n)
	}
	return fit, others, nil
}

func unfit(n *corev1.Node, want, tolerated []string, arch string) string {
	ready := false
	for _, c := range n.Status.Conditions {
		ready = ready || (c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue)
	}
	switch {
	case !ready:
		return "is not ready"
	case n.Spec.Unschedulable:
		return "is cordoned"
	case n.Labels[corev1.LabelArchStable] != arch:
		return "is " + n.Labels[corev1.LabelArchStable]
	}
	for _, l := range want {
		k, v, _ := strings.Cut(l, "=")
		if got, ok := n.Labels[k]; !ok || got != v {
			return "lacks the label " + l
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.Contains(tolerated, t.Key) {
			return "has the taint " + t.Key + ", which sessions don't tolerate"
		}
	}
	return ""
}

func nodesFit(ctx context.Context, e steps.Env) steps.Result {
	fit, others, err := candidates(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	if len(fit) == 0 {
		found := "no node takes sessions: " + strings.Join(others, "; ")
		if len(others) == 0 {
			found = "the cluster has no nodes"
		}
		return steps.Failed(found, e.Kubectl()+" get nodes --show-labels    # then label or untaint one, or answer nodes.labels, nodes.tolerations")
	}
	found := fmt.Sprintf("%d of %d nodes: %s", len(fit), len(fit)+len(others), nodeNames(fit))
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return steps.Unseen(err)
	}
	if shut, key := shutOut(e, nodes); shut != "" {
		return steps.Warned(found+"; "+shut+" has the labels of the nodes for sessions, and the taint "+key+", which sessions don't tolerate",
			"answer nodes.tolerations with "+key+", if Renku's notebooks.sessionTolerations or the resource classes have it; else: "+e.Kubectl()+" taint node "+shut+" "+key+"-")
	}
	return steps.Passed("%s", found)
}

// shutOut is a node that is labelled for sessions and that only a taint keeps
// them off, with the taint's key.
func shutOut(e steps.Env, nodes []*corev1.Node) (name, key string) {
	want, tolerated, arch := e.Answers.List("nodes.labels"), e.Answers.List("nodes.tolerations"), e.Answers.Text("nodes.arch")
	if len(want) == 0 {
		return "", ""
	}
	for _, n := range nodes {
		var keys []string
		for _, t := range n.Spec.Taints {
			if t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/") { // the cluster's own, which come and go
				keys = append(keys, t.Key)
			}
		}
		if unfit(n, want, tolerated, arch) != "" && unfit(n, want, append(keys, tolerated...), arch) == "" {
			for _, k := range keys {
				if !slices.Contains(tolerated, k) {
					return n.Name, k
				}
			}
		}
	}
	return "", ""
}

func nodeNames(nodes []*corev1.Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
	}
	return strings.Join(names, ", ")
}

func nodePurpose(ctx context.Context, e steps.Env) steps.Result {
	want := e.Answers.List("nodes.labels")
	if len(want) == 0 {
		return steps.Skipped("sessions ask for no label (nodes.labels is empty), which is Renku's default")
	}
	nodes, err := e.Cluster.List(ctx, check.Nodes, "", cluster.Selector{Labels: strings.Join(want, ",")})
	if err != nil {
		return steps.Unseen(err)
	}
	if len(nodes) == 0 {
		return steps.Failed("no node carries "+strings.Join(want, " and "), e.Kubectl()+" label node NODE "+strings.Join(want, " "))
	}
	return steps.Passed("%d nodes carry %s", len(nodes), strings.Join(want, " and "))
}

func capacity(ctx context.Context, e steps.Env) steps.Result {
	fit, _, err := candidates(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	cpu, memory := resource.MustParse(e.Answers.Text("class.cpu")), resource.MustParse(e.Answers.Text("class.memory"))
	cpu.Add(sidecarCPU)
	memory.Add(sidecarMemory)
	gpu := int64(e.Answers.Int("class.gpu"))
	for _, n := range fit {
		have := n.Status.Allocatable
		if have.Cpu().Cmp(cpu) >= 0 && have.Memory().Cmp(memory) >= 0 && gpus(n) >= gpu {
			return steps.Passed("%s has %s CPUs, %s of memory and %d GPUs to give", n.Name, have.Cpu(), have.Memory(), gpus(n))
		}
	}
	want := fmt.Sprintf("%s CPUs, %s of memory (with sidecars) and %d GPUs", &cpu, &memory, gpu)
	return steps.Failed("no node can give "+want, "make the biggest class smaller (class.cpu, class.memory, class.gpu), or add a node")
}

func gpus(n *corev1.Node) int64 {
	q := n.Status.Allocatable[gpuResource]
	return q.Value()
}
