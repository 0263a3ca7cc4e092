package ondemand

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

const levelPage = "https://kubernetes.io/docs/concepts/security/pod-security-standards/"

func policyChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "no-pod-security-policies", Title: "No PodSecurityPolicy blocks users' pods", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "PodSecurityPolicies (before 1.25) reject pods that cannot use one. USE_POD_SECURITY_POLICY always aborts " +
				"the hook, because UID is read-only in bash.",
			References: []string{
				"OSC/ondemand: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh",
				"https://kubernetes.io/docs/concepts/security/pod-security-policy/",
			},
			Run: podSecurityPolicies,
		},
		{
			Name: "level-allows-mounts", Title: "Pod security levels of users' namespaces fit their mounts",
			On: steps.Remote, Needs: []string{"signed-in"},
			Why: "Host paths require privileged, NFS requires baseline. Without mounts, use restricted. A stricter " +
				"level rejects every app; a looser level exposes the nodes.",
			References: []string{levelPage, "OSC/ood_core: lib/ood_core/job/adapters/kubernetes/templates/pod.yml.erb"},
			Run:        levelFits,
		},
		{
			Name: "adapter-pod", Title: "The API server accepts a pod of the portal", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "Pod security, policies, quotas and webhooks can each reject the pod. A server-side dry run tests " +
				"them together.",
			References: []string{"OSC/ood_core: lib/ood_core/job/adapters/kubernetes/templates/pod.yml.erb"},
			Run:        adapterPodTaken,
		},
		{
			Name: "level-allows-pods", Title: "No running pod violates the level", On: steps.Remote,
			Needs:      []string{"signed-in"},
			Why:        "A level does not stop running pods, but an app that violates the level cannot start again.",
			References: []string{"https://kubernetes.io/docs/tasks/configure-pod-container/enforce-standards-namespace-labels/"},
			Run:        levelViolations,
		},
		{
			Name: "network-policies-enforced", Title: "The cluster's network enforces NetworkPolicies", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "The hook isolates each user's pods with a NetworkPolicy, which has no effect if the network plugin " +
				"does not enforce it.",
			References: []string{"https://kubernetes.io/docs/concepts/services-networking/network-policies/#prerequisites"},
			Run:        networkEnforced,
		},
		{
			Name: "id-maps", Title: "The ConfigMaps contain every user's uid and gid", On: steps.Remote, When: pinsIDs,
			Needs: []string{"signed-in"},
			Why: "The policy looks up users by namespace in the ConfigMaps of k8-ldap-configmap and rejects every pod of a " +
				"user without an entry.",
			References: []string{"OSC/k8-ldap-configmap: charts/k8-ldap-configmap/values.yaml (userPrefix)", policySource},
			Run:        mapsKnow,
		},
		{
			Name: "ids-pinned", Title: "Users cannot run as another user if site files are mounted", On: steps.Remote,
			FixedBy: "id-policies", Needs: []string{"signed-in"},
			Why: "The portal sets each pod's uid, but users with kubectl can choose any uid and group: " +
				"Pod Security does not check them.",
			References: []string{
				policySource, "https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/",
			},
			Run: idsPinned,
		},
	}
}

func podSecurityPolicies(ctx context.Context, e steps.Env) steps.Result {
	served, err := check.Serves(
		ctx, e.Cluster, schema.GroupVersionResource{Group: "policy", Version: "v1beta1", Resource: "podsecuritypolicies"},
	)
	if err != nil {
		return steps.Errored(err)
	}
	if !served {
		return steps.Passed("the API server does not serve PodSecurityPolicy")
	}
	pods, err := check.List[corev1.Pod](ctx, e.Cluster, check.Pods, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	for _, p := range pods {
		if by := p.Annotations["kubernetes.io/psp"]; by != "" {
			return steps.Failed(
				fmt.Sprintf(
					"PodSecurityPolicies are enforced: pod %s/%s was admitted by %s. Users' pods are rejected until they are "+
						"allowed to use a PodSecurityPolicy",
					p.Namespace, p.Name, by,
				),
				e.Kubectl()+
					" create clusterrole ood-psp --verb=use --resource=podsecuritypolicies.policy --resource-name=NAME    # then "+
					"bind the ClusterRole to users; keep USE_POD_SECURITY_POLICY false. Better: upgrade to Kubernetes 1.25 or "+
					"newer, which uses pod security levels instead",
			)
		}
	}
	return steps.Warned(
		"the API server serves PodSecurityPolicy but does not enforce it: no pod has the annotation kubernetes.io/psp",
		"keep USE_POD_SECURITY_POLICY false: Kubernetes 1.25 removes PodSecurityPolicy",
	)
}

func levelFits(ctx context.Context, e steps.Env) steps.Result {
	level := e.Answers.Text("policies.level")
	need, why, unknown := needed(e)
	if unknown == nil && check.Narrowness(level) > check.Narrowness(need) {
		return steps.Failed(
			fmt.Sprintf(
				"policies.level is %s, but %s, which requires %s. Every app with these mounts is rejected", level, why, need,
			),
			"set policies.level to "+need,
		)
	}
	all, err := userNamespaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var narrow, wide, none []string
	for _, ns := range all {
		switch has := ns.Labels[check.EnforceLabel]; {
		case has == "":
			none = append(none, ns.Name)
		case unknown == nil && check.Narrowness(has) > check.Narrowness(need):
			narrow = append(narrow, ns.Name+" ("+has+")")
		case check.Narrowness(has) < check.Narrowness(level):
			wide = append(wide, ns.Name+" ("+has+")")
		}
	}
	fix := fmt.Sprintf(
		"%s label --overwrite namespaces -l %s=%s %s=%s    # the pre-hook sets the label at each user's next login",
		e.Kubectl(),
		userLabel, userValue, check.EnforceLabel, level,
	)
	switch {
	case len(all) == 0:
		return steps.Skipped("no namespace has the label %s=%s yet: no user has logged in", userLabel, userValue)
	case len(narrow) > 0:
		return steps.Failed(
			fmt.Sprintf("%s, which requires %s. These namespaces are stricter and reject apps: %s", why, need, few(narrow)), fix,
		)
	case len(none) > 0:
		return steps.Warned(
			fmt.Sprintf(
				"%d of %d users' namespaces have no level, so the cluster default applies: %s", len(none), len(all),
				few(none),
			),
			fix,
		)
	case len(wide) > 0:
		return steps.Warned(fmt.Sprintf("the level must be %s; less strict namespaces: %s", level, few(wide)), fix)
	case unknown != nil:
		return steps.Passed("%s in all %d namespaces; the mounts are unknown", level, len(all))
	}
	return steps.Passed("%s in all %d namespaces (%s)", level, len(all), why)
}

// previewNamespace returns the namespace for the dry run of a portal pod: the trial user's namespace if it exists, or
// else the first user's namespace. It returns "" if no user has a namespace.
func previewNamespace(ctx context.Context, e steps.Env) (string, error) {
	all, err := userNamespaces(ctx, e)
	if err != nil || len(all) == 0 {
		return "", err
	}
	if user := e.Answers.Text("trial.user"); user != "" {
		for _, ns := range all {
			if ns.Name == hookNamespace(e, user) {
				return ns.Name, nil
			}
		}
	}
	return all[0].Name, nil
}

func adapterPodTaken(ctx context.Context, e steps.Env) steps.Result {
	space := namespaceAccepted(ctx, e)
	if space.Status != steps.Pass && space.Status != steps.Warn {
		return space
	}
	pod := previewAdapterPod(ctx, e)
	if space.Status == steps.Warn && (pod.Status == steps.Pass || pod.Status == steps.Skip) {
		return space
	}
	return pod
}

func previewAdapterPod(ctx context.Context, e steps.Env) steps.Result {
	ns, err := previewNamespace(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if ns == "" {
		return steps.Skipped("no namespace has the label %s=%s yet, so no pod can be tested", userLabel, userValue)
	}
	types, err := e.Peer.List("mount-types")
	if err != nil {
		types = nil
	}
	pod, err := adapterPod(ctx, e, ns, types)
	if err != nil {
		return steps.Errored(err)
	}
	with := "without mounts"
	if len(types) > 0 {
		with = "with mounts (" + strings.Join(types, ", ") + ")"
	}
	_, err = e.Cluster.Preview(ctx, pod, cluster.PreviewOptions{})
	said, refused := check.Refusal(err)
	switch {
	case err == nil:
		return steps.Passed("namespace %s accepts a pod %s", ns, with)
	case refused:
		if strings.Contains(said, "no params found") || strings.Contains(said, "no uid is known") ||
			strings.Contains(said, "no gid is known") {
			return steps.Failed(fmt.Sprintf("a pod %s is rejected in %s: %s", with, ns, said),
				"see \"The ConfigMaps contain every user's uid and gid\". If that check passes, restart kube-apiserver, because "+
					"it uses outdated ConfigMaps after all policies that use them were deleted and recreated "+
					"(kubernetes/kubernetes: admission/plugin/policy/generic/policy_source.go)")
		}
		fix := check.RefusedFix(e.Kubectl(), steps.Quoted(ns), said)
		if by, _ := check.Refuser(said); by == check.ByLevel {
			fix = e.Kubectl() + " get namespace " + steps.Quoted(ns) +
				" --show-labels    # is this level intended? See \"Pod security levels of users' namespaces fit their mounts\""
		} else if fix == "" {
			fix = e.Kubectl() + " -n " + steps.Quoted(ns) +
				" get resourcequotas,limitranges    # the message names the object that rejects the pod"
		}
		return steps.Failed(fmt.Sprintf("a pod %s is rejected in %s: %s", with, ns, said), fix)
	}
	return steps.Errored(err)
}

// namespaceAccepted sends a dry-run request that creates a new user's namespace in the same way as upstream's hook
// (OSC/ondemand: hooks/k8s-bootstrap/yaml/namespace.yaml). A missing permission of the admin is not a failure. A
// rejection by a policy or webhook is only a warning, because the policy or webhook can treat the admin differently
// from the ServiceAccount ondemand.
func namespaceAccepted(ctx context.Context, e steps.Env) steps.Result {
	name := namespacePrefix(e) + "carrick-preview"
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Namespace")
	o.SetName(name)
	o.SetLabels(map[string]string{userLabel: userValue})
	o.SetAnnotations(map[string]string{seenNote: "0"})
	_, err := e.Cluster.Preview(ctx, o, cluster.PreviewOptions{})
	said, refused := check.Refusal(err)
	if !refused {
		return steps.Passed("")
	}
	fix := check.RefusedFix(e.Kubectl(), steps.Quoted(name), said)
	if fix == "" {
		fix = e.Kubectl() +
			" get validatingwebhookconfigurations,validatingadmissionpolicies    # the message names the object that rejects " +
			"the namespace"
	}
	by, _ := check.Refuser(said)
	answered := by == check.ByPolicy || by == check.ByWebhook && !strings.Contains(said, "failed calling webhook")
	if answered {
		return steps.Warned("a new user's namespace is rejected if this admin creates it: "+said, fix)
	}
	return steps.Failed("a new user's namespace is rejected: "+said, fix)
}

// levelViolations sets policies.level on each user's namespace in a dry run. The response from the API server lists the
// running pods that violate the level.
func levelViolations(ctx context.Context, e steps.Env) steps.Result {
	level := e.Answers.Text("policies.level")
	all, err := userNamespaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(all) == 0 {
		return steps.Skipped("no namespace has the label %s=%s yet: no user's pod runs", userLabel, userValue)
	}
	words, err := check.Violators(ctx, e.Cluster, all, level)
	if err != nil {
		return steps.Errored(err)
	}
	more := ""
	if len(all) > check.MostTried {
		more = fmt.Sprintf(" (first %d of %d namespaces)", check.MostTried, len(all))
	}
	if len(words) > 0 {
		return steps.Warned(
			fmt.Sprintf("the level %s would reject running pods: %s%s", level, few(words), more),
			"add a securityContext to those apps' submit.yml.erb, or choose a less strict level (policies.level)",
		)
	}
	return steps.Passed("no running pod violates the level %s%s", level, more)
}

// Name prefixes of the DaemonSets of network plugins. The plugins in enforcing enforce NetworkPolicies. The plugins in
// networksWithoutPolicies do not enforce them by default.
var (
	enforcing = []string{
		"calico-node", "canal", "cilium", "anetd", "antrea-agent", "kube-router", "weave-net", "ovnkube-node", "kube-ovn-cni",
		"azure-npm", "kube-network-policies",
	}
	networksWithoutPolicies = []string{"kube-flannel", "flannel", "kindnet", "aws-node"}
)

func networkEnforced(ctx context.Context, e steps.Env) steps.Result {
	sets, err := check.List[appsv1.DaemonSet](ctx, e.Cluster, check.DaemonSets, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	var without []string
	for _, d := range sets {
		if slices.ContainsFunc(enforcing, func(n string) bool { return strings.HasPrefix(d.Name, n) }) || policyAgent(d) {
			return steps.Passed("DaemonSet %s/%s enforces NetworkPolicies", d.Namespace, d.Name)
		}
		if slices.ContainsFunc(networksWithoutPolicies, func(n string) bool { return strings.HasPrefix(d.Name, n) }) {
			without = append(without, d.Namespace+"/"+d.Name)
		}
	}
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	if len(nodes) > 0 && strings.Contains(nodes[0].Status.NodeInfo.KubeletVersion, "+k3s") {
		return steps.Passed("k3s enforces NetworkPolicies, unless it was started with --disable-network-policy")
	}
	prove := "check that a pod in one user's namespace cannot reach a pod in another user's namespace; otherwise " +
		"install Calico, Cilium or another network plugin that enforces NetworkPolicies"
	if len(without) > 0 {
		return steps.Warned(
			fmt.Sprintf(
				"the network plugin is %s, which does not enforce NetworkPolicies by default (kindnet does since kind 0.24). "+
					"Users' pods can reach each other",
				strings.Join(without, ", "),
			),
			prove,
		)
	}
	return steps.Warned(
		fmt.Sprintf(
			"carrick recognizes none of the %d DaemonSets as a network plugin, so it is unknown whether NetworkPolicies "+
				"are enforced",
			len(sets),
		),
		prove,
	)
}

// policyAgent reports whether d is the Amazon VPC CNI with its network policy agent enabled.
func policyAgent(d *appsv1.DaemonSet) bool {
	return strings.HasPrefix(d.Name, "aws-node") &&
		slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
			return c.Name == "aws-eks-nodeagent" && slices.Contains(c.Args, "--enable-network-policy=true")
		})
}
