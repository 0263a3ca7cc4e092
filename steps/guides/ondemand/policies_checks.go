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
			Name: "no-pod-security-policies", Title: "no PodSecurityPolicy stands in users' way", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "they are gone since Kubernetes 1.25. Where they are in force no pod starts without a right to use " +
				"one, and the hook's own way to give it (USE_POD_SECURITY_POLICY) ends the hook on every cluster: it assigns " +
				"UID, which bash does not let it",
			References: []string{
				"OSC/ondemand: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh",
				"https://kubernetes.io/docs/concepts/security/pod-security-policy/",
			},
			Run: podSecurityPolicies,
		},
		{
			Name: "level-fits-mounts", Title: "users' namespaces have the pod security level that their mounts take",
			On: steps.Remote, Needs: []string{"signed-in"},
			Why: "host paths take privileged, NFS takes baseline, else restricted does. A narrower level has every app " +
				"refused; a wider one lets users do more to the nodes than they need",
			References: []string{levelPage, "OSC/ood_core: lib/ood_core/job/adapters/kubernetes/templates/pod.yml.erb"},
			Run:        levelFits,
		},
		{
			Name: "adapter-pod", Title: "the API server would take a pod of the portal", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "levels, policies, quotas and webhooks come together here: the API server is asked to judge such a " +
				"pod without keeping it",
			References: []string{"OSC/ood_core: lib/ood_core/job/adapters/kubernetes/templates/pod.yml.erb"},
			Run:        adapterPodTaken,
		},
		{
			Name: "level-breaks-nothing", Title: "no pod that runs violates the level", On: steps.Remote,
			Needs:      []string{"signed-in"},
			Why:        "a level refuses no pod that runs already; the same app does not start again after it",
			References: []string{"https://kubernetes.io/docs/tasks/configure-pod-container/enforce-standards-namespace-labels/"},
			Run:        levelBreaks,
		},
		{
			Name: "network-policies-enforced", Title: "the cluster's network enforces NetworkPolicies", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "the hook fences each user's pods in with a NetworkPolicy. Where the network has no controller for " +
				"it, it is stored and does nothing",
			References: []string{"https://kubernetes.io/docs/concepts/services-networking/network-policies/#prerequisites"},
			Run:        networkEnforced,
		},
		{
			Name: "id-maps", Title: "uid and gid of every user are known to the cluster", On: steps.Remote, When: pinsIDs,
			Needs: []string{"signed-in"},
			Why: "the policy looks users up by their namespace in the maps of k8-ldap-configmap; who is in none is " +
				"refused every pod",
			References: []string{"OSC/k8-ldap-configmap: charts/k8-ldap-configmap/values.yaml (userPrefix)", policySource},
			Run:        mapsKnow,
		},
		{
			Name: "ids-pinned", Title: "users can't run as somebody else where files of the site are mounted", On: steps.Remote,
			FixedBy: "id-policies", Needs: []string{"signed-in"},
			Why: "the portal runs each pod as its user, and nothing keeps users with kubectl to that: pod security " +
				"knows no uid. Groups of an image's /etc/group come on top unless supplementalGroupsPolicy is Strict. With " +
				"Kyverno it is a ClusterPolicy: " + kyvernoExample,
			References: []string{
				policySource, "https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/",
			},
			Run: idsPinned,
		},
	}
}

// kyvernoExample is what another policy engine takes for the same: it is shown,
// carrick does not apply it.
const kyvernoExample = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: ondemand-uid}, spec: {validationFailureAction: Enforce, rules: [{name: uid, ` +
	`match: {any: [{resources: {kinds: [Pod], namespaces: ["user-?*"]}}]}, ` +
	`context: [{name: uids, configMap: {name: user-uid-map, namespace: k8-ldap-configmap}}], ` +
	`validate: {message: "runAsUser has to be the user's uid", pattern: {spec: {securityContext: {runAsUser: "{{ uids.data.\"{{request.namespace}}\" }}"}, =(containers): [{=(securityContext): {=(runAsUser): "{{ uids.data.\"{{request.namespace}}\" }}"}}]}}}}]}}`

func podSecurityPolicies(ctx context.Context, e steps.Env) steps.Result {
	served, err := check.Serves(
		ctx, e.Cluster, schema.GroupVersionResource{Group: "policy", Version: "v1beta1", Resource: "podsecuritypolicies"},
	)
	if err != nil {
		return steps.Errored(err)
	}
	if !served {
		return steps.Passed("the API server has no such kind: levels and policies are what there is")
	}
	pods, err := check.List[corev1.Pod](ctx, e.Cluster, check.Pods, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	for _, p := range pods {
		if by := p.Annotations["kubernetes.io/psp"]; by != "" {
			return steps.Failed(
				fmt.Sprintf(
					"PodSecurityPolicies are in force: pod %s/%s was let in by %s. Users' pods are refused until they may use one",
					p.Namespace, p.Name, by,
				),
				e.Kubectl()+
					" create clusterrole ood-psp --verb=use --resource=podsecuritypolicies.policy --resource-name=NAME    # and "+
					"bind it to users; leave USE_POD_SECURITY_POLICY false. Better: upgrade to 1.25, where levels take their place",
			)
		}
	}
	return steps.Warned(
		"the API server serves PodSecurityPolicies, and no pod was let in by one: they are not in force",
		"leave USE_POD_SECURITY_POLICY false: the kind goes with Kubernetes 1.25",
	)
}

func levelFits(ctx context.Context, e steps.Env) steps.Result {
	level := e.Answers.Text("policies.level")
	need, why, unknown := needed(e)
	if unknown == nil && check.Narrowness(level) > check.Narrowness(need) {
		return steps.Failed(
			fmt.Sprintf("policies.level is %s, and %s, which takes %s: every such app is refused", level, why, need),
			"answer policies.level with "+need,
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
		"%s label --overwrite namespaces -l %s=%s %s=%s    # the pre-hook does it at each user's next login", e.Kubectl(),
		userLabel, userValue, check.EnforceLabel, level,
	)
	switch {
	case len(all) == 0:
		return steps.Skipped("no namespace has the label %s=%s yet: nobody has logged in", userLabel, userValue)
	case len(narrow) > 0:
		return steps.Failed(
			fmt.Sprintf("%s, which takes %s; narrower are %s: apps are refused there", why, need, few(narrow)), fix,
		)
	case len(none) > 0:
		return steps.Warned(
			fmt.Sprintf(
				"%d of %d users' namespaces have no level, so the cluster's own default holds there: %s", len(none), len(all),
				few(none),
			),
			fix,
		)
	case len(wide) > 0:
		return steps.Warned(fmt.Sprintf("the level is to be %s; wider are %s", level, few(wide)), fix)
	case unknown != nil:
		return steps.Passed("%s in all %d; what is mounted is not known", level, len(all))
	}
	return steps.Passed("%s in all %d (%s)", level, len(all), why)
}

// podSpace is the namespace in which a pod of the portal is tried.
func podSpace(ctx context.Context, e steps.Env) (string, error) {
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
	space := namespaceTaken(ctx, e)
	if space.Status != steps.Pass && space.Status != steps.Warn {
		return space
	}
	pod := adapterPodTried(ctx, e)
	if space.Status == steps.Warn && (pod.Status == steps.Pass || pod.Status == steps.Skip) {
		return space
	}
	return pod
}

func adapterPodTried(ctx context.Context, e steps.Env) steps.Result {
	ns, err := podSpace(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if ns == "" {
		return steps.Skipped("no namespace has the label %s=%s yet: there is none to try it in", userLabel, userValue)
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
		return steps.Passed("in %s, %s", ns, with)
	case refused:
		if strings.Contains(said, "no params found") || strings.Contains(said, "no uid is known") ||
			strings.Contains(said, "no gid is known") {
			return steps.Failed(fmt.Sprintf("a pod %s is refused in %s: %s", with, ns, said),
				"see \"uid and gid of every user are known to the cluster\"; where that holds, the API server goes on with maps "+
					"of before: it does so once all policies that took them were deleted and made anew (kubernetes/kubernetes: "+
					"admission/plugin/policy/generic/policy_source.go). Restart kube-apiserver")
		}
		fix := check.RefusedFix(e.Kubectl(), steps.Quoted(ns), said)
		if by, _ := check.Refuser(said); by == check.ByLevel {
			fix = e.Kubectl() + " get namespace " + steps.Quoted(ns) +
				" --show-labels    # is its level meant? See \"users' namespaces have the pod security level that their " +
				"mounts take\""
		} else if fix == "" {
			fix = e.Kubectl() + " -n " + steps.Quoted(ns) +
				" get resourcequotas,limitranges    # the reason says what refuses it"
		}
		return steps.Failed(fmt.Sprintf("a pod %s is refused in %s: %s", with, ns, said), fix)
	}
	return steps.Errored(err)
}

// namespaceTaken asserts that the API server would take a new user's namespace as upstream's hook creates it
// (OSC/ondemand: hooks/k8s-bootstrap/yaml/namespace.yaml). What keeps the admin from trying it is no fault. A refusal
// by a policy or webhook is a warning: it can allow the ServiceAccount ondemand what it refuses the admin.
func namespaceTaken(ctx context.Context, e steps.Env) steps.Result {
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
			" get validatingwebhookconfigurations,validatingadmissionpolicies    # the reason says what refuses it"
	}
	by, _ := check.Refuser(said)
	answered := by == check.ByPolicy || by == check.ByWebhook && !strings.Contains(said, "failed calling webhook")
	if answered {
		return steps.Warned("the namespace of a new user is refused for this admin: "+said, fix)
	}
	return steps.Failed("the namespace of a new user is refused: "+said, fix)
}

// levelBreaks asks what the API server would say to the level on each namespace,
// which it answers with the pods that violate it.
func levelBreaks(ctx context.Context, e steps.Env) steps.Result {
	level := e.Answers.Text("policies.level")
	all, err := userNamespaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(all) == 0 {
		return steps.Skipped("no namespace has the label %s=%s yet: no pod of a user runs", userLabel, userValue)
	}
	words, err := check.Violators(ctx, e.Cluster, all, level)
	if err != nil {
		return steps.Errored(err)
	}
	more := ""
	if len(all) > check.MostTried {
		more = fmt.Sprintf(" (of the first %d of %d namespaces)", check.MostTried, len(all))
	}
	if len(words) > 0 {
		return steps.Warned(
			fmt.Sprintf("%s would refuse what runs: %s%s", level, few(words), more),
			"those apps need a securityContext in their submit.yml.erb, or a wider level (policies.level)",
		)
	}
	return steps.Passed("%s would refuse none of them%s", level, more)
}

// What DaemonSets of networks are called: those that enforce NetworkPolicies,
// and those that don't by themselves.
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
			return steps.Passed("by %s/%s", d.Namespace, d.Name)
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
		return steps.Passed("by k3s itself, unless it was started with --disable-network-policy")
	}
	prove := "prove it: a pod in one user's namespace must not reach a pod in another's; else install calico, cilium or " +
		"another network that enforces them"
	if len(without) > 0 {
		return steps.Warned(
			fmt.Sprintf(
				"the network is %s, which does not enforce NetworkPolicies by itself (kindnet does from kind 0.24 on): users' "+
					"pods may reach each other's",
				strings.Join(without, ", "),
			),
			prove,
		)
	}
	return steps.Warned(
		fmt.Sprintf(
			"none of the %d DaemonSets is a network that carrick knows: whether NetworkPolicies do anything can't be told",
			len(sets),
		),
		prove,
	)
}

// policyAgent tells whether Amazon's network has its policy agent beside it.
func policyAgent(d *appsv1.DaemonSet) bool {
	return strings.HasPrefix(d.Name, "aws-node") &&
		slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
			return c.Name == "aws-eks-nodeagent" && slices.Contains(c.Args, "--enable-network-policy=true")
		})
}
