package interlink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster"
	"carrick/cluster/chart"
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

// These are the first virtual kubelet that passes tokens to its plugin, and the last chart that
// indents a CA correctly in YAML.
var (
	firstKubelet = version.MustParseGeneric("0.4.0")
	lastGood     = version.MustParseGeneric("0.5.2")
)

func nodeChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "virtual-node", Title: "the virtual node is there and ready", On: steps.Local, Needs: []string{"signed-in"},
			Timeout: 5 * time.Minute,
			Why: "pods for the other side are scheduled to this node, by its name; the virtual kubelet makes it " +
				"when it starts",
			References: []string{"interlink-hq/interLink: pkg/virtualkubelet/virtualkubelet.go"}, Run: nodeReady,
		},
		{
			Name: "kubelet-image", Title: "the virtual kubelet is 0.4.0 or newer, and pinned", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "before 0.4.0 no token reached a plugin. The chart's default is the tag latest, pulled at each start: " +
				"another version one day, without anybody's doing",
			References: []string{vkSource, "interlink-hq/interlink-helm-chart: interlink/values.yaml"}, Run: kubeletImage,
		},
		{
			Name: "chart-release", Title: "the chart's values hold no CA that breaks its configuration", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "since 0.5.3 the chart indents the first line of kubernetesApiCaCrt deeper than the rest: the " +
				"configuration is no YAML, and the virtual kubelet stops at once. The published guide's command sets that value. " +
				"No form of the value avoids it",
			References: []string{vkChartSource}, Run: chartRelease,
		},
		{
			Name: "chart-values", Title: "the chart's last upgrade has kept the site's values", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "helm upgrade with --set, as in the published guide, and without --reuse-values or the site's own " +
				"file makes every other value the chart's default again: the address of the plugin among them",
			References: []string{page, "https://helm.sh/docs/helm/helm_upgrade/"}, Run: chartValues,
		},
	}
}

// virtualNode returns the name of the node that a virtual kubelet of InterLink has created, or
// the first of several.
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

// kubeletNamespace returns the namespace of the ServiceAccount that the chart's
// ClusterRoleBinding grants the virtual kubelet's permissions. A Deployment of that name would
// not be proof: any user can create one, and the result decides whose configuration carrick
// changes.
func kubeletNamespace(ctx context.Context, e steps.Env) (any, error) {
	e.Cluster.StartList("", check.ClusterRoleBindings)
	name := nodeName(e) + "-rolebinding"
	o, err := check.FromList(ctx, e.Cluster, check.ClusterRoleBindings, "", name)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("there is no ClusterRoleBinding %s", name)
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
	return nil, steps.Absent("ClusterRoleBinding %s names no ServiceAccount %s", name, nodeName(e))
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
				fmt.Sprintf("there is no node %s; the virtual node is called %s", nodeName(e), clean.Text(name)),
				"answer vk.node with the name of the virtual node (nodeName in the chart's values): "+e.Kubectl()+" get nodes -l "+
					nodeLabel,
			)
		}
		return steps.Failed(fmt.Sprintf("there is no node %s: %s", nodeName(e), others), look).Symptom()
	}
	if err != nil {
		return steps.Errored(err)
	}
	if n.Labels[nodeLabel] == "" {
		return steps.Failed(
			fmt.Sprintf("node %s has no label %s: it is no virtual node of InterLink", n.Name, nodeLabel),
			"answer vk.node with another one: "+e.Kubectl()+" get nodes -l "+nodeLabel,
		)
	}
	ready, ping := check.NodeCondition(n, corev1.NodeReady), check.NodeCondition(n, pingCondition)
	switch {
	case ready.Type == "":
		return steps.Waits(n.CreationTimestamp.Time, "node %s does not say yet whether it is ready", n.Name).Or(look)
	case ready.Status == corev1.ConditionTrue:
		return schedulable(e, n)
	case ready.Status == corev1.ConditionFalse && ping.Status == corev1.ConditionFalse:
		return steps.Failed(fmt.Sprintf("node %s is not ready: %s", n.Name,
			quoted(cmp.Or(ping.Message, ping.Reason, "it does not say why"))), look)
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
		quoted(cmp.Or(ready.Message, ready.Reason, "it does not say why"))), look).Symptom()
}

// schedulable reports whether the scheduler places pods on a ready virtual node if they
// tolerate only its own taint.
func schedulable(e steps.Env, n *corev1.Node) steps.Result {
	if n.Spec.Unschedulable {
		return steps.Failed(
			fmt.Sprintf("node %s is cordoned: no new pod is scheduled there", n.Name), e.Kubectl()+" uncordon "+n.Name,
		)
	}
	for _, t := range n.Spec.Taints {
		if t.Key == nodeTaint || t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		taint := clean.Text(fmt.Sprintf("%s:%s", t.Key, t.Effect))
		return steps.Warned(
			fmt.Sprintf("node %s has the taint %s: jobs that do not tolerate it are not scheduled there", n.Name, taint),
			fmt.Sprintf(
				"%s taint node %s %s-    # comes back if NodeTaints of the virtual kubelet or Taints of the plugin have it; or "+
					"have all jobs tolerate it",
				e.Kubectl(), n.Name, steps.Quoted(taint),
			),
		)
	}
	return steps.Passed("%s, ready", n.Name)
}

// pendingReason is the reason of the condition Ready, whatever its status. The virtual kubelet pings interLink's API
// server for the first time 30 seconds after its start, and the Node is not ready until then. pingCondition exists
// since 0.5.2 and is deleted at each start (interlink-hq/interLink 0.6.1: pkg/virtualkubelet/virtualkubelet.go,
// NodeCondition and nodeUpdate).
const (
	pendingReason                          = "KubeletPending"
	pingCondition corev1.NodeConditionType = "InterlinkConnectivity"
)

// kubeletSince returns when the virtual kubelet last started, or zero if it does not run. The
// transition time of the condition Ready cannot be used, because each failed ping updates it.
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
	return steps.Failed(fmt.Sprintf("there is no Deployment %s in namespace %s", vkDeployment(e), vkNamespace(e)),
		fmt.Sprintf(
			"install InterLink's chart, or answer vk.namespace: %s -n %s install interlink %s -f VALUES.yaml", e.Helm(),
			vkNamespace(e), chartAt,
		))
}

func kubeletImage(ctx context.Context, e steps.Env) steps.Result {
	_, c, err := theKubelet(ctx, e)
	switch {
	case apierrors.IsNotFound(err):
		return noKubelet(e)
	case err != nil:
		return steps.Errored(err)
	case c == nil:
		return steps.Failed(
			fmt.Sprintf("Deployment %s has no container %s", vkDeployment(e), kubeletName),
			"is it the chart's? "+e.Kubectl()+" -n "+vkNamespace(e)+" get deploy "+vkDeployment(e)+" -o yaml",
		)
	}
	image := clean.Text(c.Image)
	tag := tagOf(c.Image)
	pin := pinFix(ctx, e, c.Image)
	if strings.Contains(c.Image, "@sha256:") {
		return steps.Warned(
			"it is pinned by a digest, which does not say whether it is 0.4.0 or newer: "+image,
			"look what it is: "+e.Kubectl()+" -n "+vkNamespace(e)+" logs deploy/"+vkDeployment(e)+" -c "+kubeletName+" | head",
		)
	}
	v, err := version.ParseGeneric(tag)
	switch {
	case strings.ContainsAny(c.Image, "[] "):
		return steps.Failed(
			image+" is no name of an image: a value of the chart was given as something else than a text", pin,
		)
	case err != nil:
		return steps.Warned(
			image+" names no release: whether it is 0.4.0 or newer can't be told, and it is another one one day", pin,
		)
	case v.LessThan(firstKubelet):
		return steps.Failed(image+" hands no token to the plugin", pin)
	}
	return steps.Passed("%s", image)
}

// onHelm4 is appended to each command that upgrades the release with Helm: Helm 4 uses
// server-side apply, as carrick does, and stops at fields that other managers have set.
const onHelm4 = "    # with Helm 4 add --force-conflicts: carrick has set fields of it"

// pinFix is the command that sets the chart's image of the virtual kubelet. The chart's value
// is a single string, which older versions split (interlink-hq/interlink-helm-chart:
// values.yaml).
func pinFix(ctx context.Context, e steps.Env, image string) string {
	name, at, _ := strings.Cut(image, "@")
	name = strings.TrimSuffix(name, ":"+tagOf(name))
	if at != "" || steps.Quoted(name) != name || strings.Contains(name, "=") {
		name = "ghcr.io/interlink-hq/interlink/virtual-kubelet-inttw"
	}
	release, chartVersion, set := "RELEASE", "", "virtualNode.image="+name+":0.6.1"
	if r, err := theRelease(ctx, e); err == nil && r != nil {
		release, chartVersion = r.Name, " --version "+r.Version
		if v, _ := r.Value("virtualNode.image"); v != nil {
			if _, parts := v.(map[string]any); parts {
				set = "virtualNode.image.tag=0.6.1"
			}
		}
	}
	return fmt.Sprintf(
		"have the chart run a release: %s -n %s upgrade %s %s%s --reuse-values --set %s%s", e.Helm(), vkNamespace(e), release,
		chartAt, chartVersion, set, onHelm4,
	)
}

// tagOf returns the tag of an image's name, or latest if it has none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	last := image[strings.LastIndex(image, "/")+1:]
	if _, tag, ok := strings.Cut(last, ":"); ok {
		return tag
	}
	return "latest"
}

// theRelease returns the Helm release of InterLink's chart in its namespace, or nil if there is
// none.
func theRelease(ctx context.Context, e steps.Env) (*chart.Release, error) {
	all, err := chart.Releases(ctx, e.Cluster, vkNamespace(e))
	if err != nil {
		return nil, err
	}
	for i := range all {
		r := &all[i]
		if r.Chart == chartName {
			if node, ok := r.Value("nodeName"); !ok || node == nodeName(e) {
				return r, nil
			}
		}
	}
	return nil, nil
}

// breaksCA reports whether that version of the chart renders an invalid configuration if a CA
// is set.
func breaksCA(v string) bool {
	have, err := version.ParseGeneric(v)
	return err != nil || lastGood.LessThan(have)
}

func chartRelease(ctx context.Context, e steps.Env) steps.Result {
	r, err := theRelease(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if r == nil {
		return steps.Skipped(
			"Helm keeps no release of chart %s with node %s in namespace %s", chartName, nodeName(e), vkNamespace(e),
		)
	}
	given, _ := r.Value("interlink.kubernetesApiCaCrt")
	ca, _ := given.(string)
	what := fmt.Sprintf("release %s, chart %s", r.Name, r.Version)
	switch {
	case ca == "" || !breaksCA(r.Version):
		if breaksCA(r.Version) {
			what += ", which breaks its configuration when it is given a CA: carrick writes it into the ConfigMap instead"
		}
		return steps.Passed("%s", what)
	}
	return steps.Failed(what+" has interlink.kubernetesApiCaCrt set: each upgrade breaks the configuration",
		fmt.Sprintf(
			"%s -n %s upgrade %s %s --version %s --reuse-values --set interlink.kubernetesApiCaCrt=%s, then %s",
			e.Helm(), vkNamespace(e), r.Name, chartAt, r.Version, onHelm4, e.ApplyStep("config"),
		))
}

// chartValues compares the values of the release with those of the previous revision, if the
// upgrade was for the endpoint.
func chartValues(ctx context.Context, e steps.Env) steps.Result {
	r, err := theRelease(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if r == nil {
		return steps.Skipped(
			"Helm keeps no release of chart %s with node %s in namespace %s", chartName, nodeName(e), vkNamespace(e),
		)
	}
	old, err := chart.Before(ctx, e.Cluster, r)
	if errors.Is(err, chart.ErrNoRelease) {
		return steps.Passed("release %s, revision %d: Helm keeps none before it", r.Name, r.Revision)
	}
	if err != nil {
		return steps.Errored(err)
	}
	lost := slices.DeleteFunc(
		r.Lost(old), func(path string) bool { return strings.HasPrefix(path, "interlink.kubernetesApi") },
	)
	if _, told := r.Given("interlink.kubernetesApiAddr"); len(lost) == 0 || !told {
		return steps.Passed("release %s, revision %d: nothing of revision %d is missing", r.Name, r.Revision, old.Revision)
	}
	return steps.Failed(
		clean.Text(fmt.Sprintf(
			"release %s, revision %d, was made with --set alone and has lost what revision %d was given: %s", r.Name, r.Revision,
			old.Revision, strings.Join(lost, ", "),
		)),
		fmt.Sprintf(
			"%[1]s -n %[2]s get values %[3]s --revision %[4]d > site.yaml; %[1]s -n %[2]s upgrade %[3]s %[5]s --version %[6]s "+
				"-f site.yaml --set interlink.kubernetesApiCaCrt=%[7]s, then %[8]s",
			e.Helm(), vkNamespace(e), r.Name, old.Revision, chartAt, r.Version, onHelm4, e.ApplyStep("config"),
		),
	)
}

// quoted quotes text from a cluster for use in a sentence.
func quoted(text string) string { return `"` + clean.Text(text) + `"` }

// notThere reports whether a read found nothing.
func notThere(err error) bool {
	return apierrors.IsNotFound(err) || steps.IsAbsent(err)
}
