package renku

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		{
			Name: "csi-on-nodes", Title: "csi-rclone runs on each of these nodes", On: steps.Remote, Needs: []string{"nodes"},
			Why: "a session with a data connector on a node without the driver fails: driver name not found in the list of registered CSI drivers",
			See: []string{page, "SwissDataScienceCenter/csi-rclone: deploy/csi-rclone"},
			Run: driverOnNodes,
		},
		{
			Name: "csi-kubelet-dir", Title: "csi-rclone knows where the kubelet keeps its files", On: steps.Remote, Needs: []string{"nodes"},
			Why: "k0s and microk8s keep them elsewhere than the chart's default /var/lib/kubelet; mounts then never appear",
			Run: driverKubeletDir,
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
	return steps.Passed("%d of %d nodes: %s", len(fit), len(fit)+len(others), nodeNames(fit))
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

// driverInstalled tells whether csi-rclone is registered with the cluster.
func driverInstalled(ctx context.Context, e steps.Env) (bool, error) {
	_, err := e.Cluster.Get(ctx, check.CSIDrivers, "", rcloneSpace)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func driverOnNodes(ctx context.Context, e steps.Env) steps.Result {
	installed, err := driverInstalled(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	if !installed {
		return steps.Skipped("csi-rclone is not installed yet; sessions run without it, data connectors don't")
	}
	fit, _, err := candidates(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	var without []string
	for _, n := range fit {
		node, err := check.Get[storagev1.CSINode](ctx, e.Cluster, check.CSINodes, "", n.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return steps.Unseen(err)
		}
		if err != nil || !slices.ContainsFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == rcloneSpace }) {
			without = append(without, n.Name)
		}
	}
	if len(without) > 0 {
		return steps.Failed("the driver is not registered on "+strings.Join(without, ", "),
			"helm upgrade csi-rclone with csiNodepluginRclone.tolerations for the taints of those nodes; then: "+e.Kubectl()+" get pods -n "+rcloneSpace+" -l app=csi-nodeplugin-rclone -o wide")
	}
	return driverPodsReady(ctx, e, fit)
}

func driverPodsReady(ctx context.Context, e steps.Env, fit []*corev1.Node) steps.Result {
	pods, err := check.List[corev1.Pod](ctx, e.Cluster, check.Pods, "", cluster.Selector{Labels: "app=csi-nodeplugin-rclone"})
	if err != nil {
		return steps.Unseen(err)
	}
	ready := map[string]bool{}
	for _, p := range pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready[p.Spec.NodeName] = true
			}
		}
	}
	for _, n := range fit {
		if !ready[n.Name] {
			return steps.Failed("no pod of the driver is ready on "+n.Name, e.Kubectl()+" get pods -A -l app=csi-nodeplugin-rclone -o wide")
		}
	}
	return steps.Passed("registered and ready on %d nodes", len(fit))
}

func driverKubeletDir(ctx context.Context, e steps.Env) steps.Result {
	installed, err := driverInstalled(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	if !installed {
		return steps.Skipped("csi-rclone is not installed yet")
	}
	fit, _, err := candidates(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	for _, n := range fit {
		v := n.Status.NodeInfo.KubeletVersion
		_, microk8s := n.Labels["microk8s.io/cluster"]
		if strings.Contains(v, "k0s") || microk8s {
			return steps.Warned(fmt.Sprintf("%s runs %s, whose kubelet keeps its files elsewhere", n.Name, v),
				"set the chart's kubeletDir: /var/lib/k0s/kubelet on k0s, /var/snap/microk8s/common/var/lib/kubelet on microk8s")
		}
	}
	return steps.Passed("no node is k0s or microk8s: /var/lib/kubelet holds")
}
