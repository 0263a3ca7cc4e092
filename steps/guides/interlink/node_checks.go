package interlink

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	vkSource      = "interlink-hq/interLink: pkg/virtualkubelet/execute.go"
	vkReads       = "interlink-hq/interLink: pkg/virtualkubelet/config.go, cmd/virtual-kubelet/main.go"
	vkChartSource = "interlink-hq/interlink-helm-chart: interlink/templates/virtual-kubelet-config.yaml"
	chartName     = "interlink"
	chartAt       = "oci://ghcr.io/interlink-hq/interlink-helm-chart/interlink"
)

var (
	// firstKubelet is the first version of the virtual kubelet that passes tokens to its plugin.
	firstKubelet = version.MustParseGeneric("0.4.0")
	// lastGood is the last version of the chart that indents a CA correctly.
	lastGood = version.MustParseGeneric("0.5.2")
)

func nodeChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "virtual-node", Title: "The virtual node exists and is ready", On: steps.Local, Needs: []string{"signed-in"},
			Timeout: 5 * time.Minute,
			Why: "Pods for the other side are scheduled to this node by name. The virtual kubelet creates the " +
				"node at start.",
			References: []string{"interlink-hq/interLink: pkg/virtualkubelet/virtualkubelet.go"}, Run: nodeReady,
		},
		{
			Name: "kubelet-image", Title: "The virtual kubelet is pinned to version 0.4.0 or newer", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Before 0.4.0 no token reaches the plugin. With the chart's default tag latest, each start can pull " +
				"another version.",
			References: []string{vkSource, "interlink-hq/interlink-helm-chart: interlink/values.yaml"}, Run: kubeletImage,
		},
		{
			Name: "chart-release", Title: "The chart's values contain no CA that breaks the YAML", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Since 0.5.3 the chart renders kubernetesApiCaCrt, which the published guide sets, as invalid YAML. " +
				"The virtual kubelet then stops immediately.",
			References: []string{vkChartSource}, Run: chartRelease,
		},
		{
			Name: "chart-values", Title: "The chart's last upgrade kept the site's values", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Without --reuse-values or the site's values file, the published helm upgrade --set resets all other " +
				"values, such as the plugin's address.",
			References: []string{page, "https://helm.sh/docs/helm/helm_upgrade/"}, Run: chartValues,
		},
	}
}

// virtualNode returns the name of the first node with the label that InterLink's virtual kubelet sets.
func virtualNode(ctx context.Context, e steps.Env) (any, error) {
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{Labels: nodeLabel})
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, steps.Absent("no node has the label %s", nodeLabel)
	}
	return nodes[0].Name, nil
}

// kubeletNamespace returns the namespace of the virtual kubelet's ServiceAccount, as named in the chart's
// ClusterRoleBinding. The result decides whose configuration carrick changes. A Deployment with the expected name would
// be no proof, because any user can create one in their own namespace.
func kubeletNamespace(ctx context.Context, e steps.Env) (any, error) {
	e.Cluster.StartList("", check.ClusterRoleBindings)
	name := nodeName(e) + "-rolebinding"
	o, err := check.FromList(ctx, e.Cluster, check.ClusterRoleBindings, "", name)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("ClusterRoleBinding %s does not exist", name)
	}
	if err != nil {
		return nil, err
	}
	b, err := check.As[rbacv1.ClusterRoleBinding](o)
	if err != nil {
		return nil, err
	}
	for _, subject := range b.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind && subject.Name == nodeName(e) {
			return subject.Namespace, nil
		}
	}
	return nil, steps.Absent("ClusterRoleBinding %s does not name ServiceAccount %s", name, nodeName(e))
}

func nodeReady(ctx context.Context, e steps.Env) steps.Result {
	n, err := check.Get[corev1.Node](ctx, e.Cluster, check.Nodes, "", nodeName(e))
	look := fmt.Sprintf(
		"%s -n %s logs deploy/%s -c %s --tail=20", e.Kubectl(), vkNamespace(e), vkDeployment(e), kubeletName,
	)
	if apierrors.IsNotFound(err) {
		others := "no node has the label " + nodeLabel
		if name, err := e.Own.Text("virtual-node"); err == nil {
			return steps.Failed(
				fmt.Sprintf("node %s does not exist; the virtual node is named %s", nodeName(e), clean.Text(name)),
				"set vk.node to the name of the virtual node (nodeName in the chart's values): "+e.Kubectl()+" get nodes -l "+
					nodeLabel,
			)
		}
		return steps.Failed(fmt.Sprintf("node %s does not exist: %s", nodeName(e), others), look).Symptom()
	}
	if err != nil {
		return steps.Errored(err)
	}
	if n.Labels[nodeLabel] == "" {
		return steps.Failed(
			fmt.Sprintf("node %s has no label %s, so it is not a virtual node of InterLink", n.Name, nodeLabel),
			"set vk.node to one of these nodes: "+e.Kubectl()+" get nodes -l "+nodeLabel,
		)
	}
	ready, ping := check.NodeCondition(n, corev1.NodeReady), check.NodeCondition(n, pingCondition)
	switch {
	case ready.Type == "":
		return steps.Waits(n.CreationTimestamp.Time, "node %s has no condition Ready yet", n.Name).Or(look)
	case ready.Status == corev1.ConditionTrue:
		return schedulable(e, n)
	case ready.Status == corev1.ConditionFalse && ping.Status == corev1.ConditionFalse:
		return steps.Failed(fmt.Sprintf("node %s is not ready: %s", n.Name,
			quoted(cmp.Or(ping.Message, ping.Reason, "no reason given"))), look)
	case ready.Status == corev1.ConditionFalse && ready.Reason == pendingReason:
		since, err := kubeletSince(ctx, e)
		if err != nil {
			return steps.Errored(err)
		}
		if since.IsZero() {
			since = ready.LastTransitionTime.Time
		}
		return steps.Waits(since, "node %s is not ready: the virtual kubelet has not reached interLink's API server since "+
			"it started", n.Name).Or(look)
	}
	return steps.Failed(fmt.Sprintf("node %s is not ready: %s", n.Name,
		quoted(cmp.Or(ready.Message, ready.Reason, "no reason given"))), look).Symptom()
}

// schedulable verifies that the scheduler can place pods on a ready virtual node if the pods tolerate only the taint
// nodeTaint.
func schedulable(e steps.Env, n *corev1.Node) steps.Result {
	if n.Spec.Unschedulable {
		return steps.Failed(
			fmt.Sprintf("node %s is cordoned, so no new pod is scheduled there", n.Name), e.Kubectl()+" uncordon "+n.Name,
		)
	}
	for _, t := range n.Spec.Taints {
		if t.Key == nodeTaint || t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		taint := clean.Text(fmt.Sprintf("%s:%s", t.Key, t.Effect))
		return steps.Warned(
			fmt.Sprintf("node %s has the taint %s, so jobs that do not tolerate it are not scheduled there", n.Name, taint),
			fmt.Sprintf(
				"%s taint node %s %s-    # the taint returns if NodeTaints of the virtual kubelet or Taints of the plugin "+
					"contains it; alternatively make all jobs tolerate it",
				e.Kubectl(), n.Name, steps.Quoted(taint),
			),
		)
	}
	return steps.Passed("node %s is ready", n.Name)
}

// pendingReason is the reason that the virtual kubelet always sets in the condition Ready, even if the status is True.
// The virtual kubelet pings interLink's API server for the first time 30 seconds after its start, and the node is not
// ready until then. Since 0.5.2, the virtual kubelet also sets the condition pingCondition and deletes it at each start
// (interlink-hq/interLink 0.6.1: pkg/virtualkubelet/virtualkubelet.go, NodeCondition and nodeUpdate).
const (
	pendingReason                          = "KubeletPending"
	pingCondition corev1.NodeConditionType = "InterlinkConnectivity"
)

// kubeletSince returns when the virtual kubelet last started, or the zero time if it is not running. The transition
// time of the condition Ready cannot be used, because each failed ping updates it.
func kubeletSince(ctx context.Context, e steps.Env) (time.Time, error) {
	pods, err := podsOfKubelet(ctx, e)
	if err != nil {
		return time.Time{}, err
	}
	var since time.Time
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == kubeletName && s.State.Running != nil && s.State.Running.StartedAt.After(since) {
				since = s.State.Running.StartedAt.Time
			}
		}
	}
	return since, nil
}

// theKubelet returns the virtual kubelet's Deployment and its container.
func theKubelet(ctx context.Context, e steps.Env) (*appsv1.Deployment, *corev1.Container, error) {
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, vkNamespace(e), vkDeployment(e))
	if err != nil {
		return nil, nil, err
	}
	for i, c := range d.Spec.Template.Spec.Containers {
		if c.Name == kubeletName {
			return d, &d.Spec.Template.Spec.Containers[i], nil
		}
	}
	return d, nil, nil
}

func noKubelet(e steps.Env) steps.Result {
	return steps.Failed(fmt.Sprintf("Deployment %s does not exist in namespace %s", vkDeployment(e), vkNamespace(e)),
		fmt.Sprintf(
			"install InterLink's chart, or set vk.namespace to its namespace: %s -n %s install interlink %s -f VALUES.yaml",
			e.Helm(),
			vkNamespace(e), chartAt,
		))
}

func quoted(text string) string { return `"` + clean.Text(text) + `"` }

// isMissing reports whether err means that an object or a fact does not exist.
func isMissing(err error) bool {
	return apierrors.IsNotFound(err) || steps.IsAbsent(err)
}
