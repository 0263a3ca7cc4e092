package ondemand

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
)

func trialChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "user-namespace", Title: "The trial user's namespace exists with the hook's labels", On: steps.Remote,
			When: hasTrialUser, FixedBy: "trial-namespace", Needs: []string{"signed-in"},
			Why:        "Reapers and policies find users' namespaces by label, and the adapter finds them by name.",
			References: []string{hookSource + "/namespace.yaml"},
			Run:        userSpace,
		},
		{
			Name: "user-network-policy", Title: "A NetworkPolicy restricts ingress to the trial user's pods", On: steps.Remote,
			When:    hasTrialUser,
			FixedBy: "trial-network-policy", Needs: []string{"user-namespace"},
			Why: "Other users' pods must not reach the trial user's pods. The web node must reach them, because the portal's " +
				"proxy connects from there.",
			References: []string{hookSource + "/network-policy.yaml"},
			Run:        userFence,
		},
		{
			Name: "user-bindings", Title: "The trial user and their apps are bound to their roles", On: steps.Remote,
			When: hasTrialUser, FixedBy: "trial-role-bindings", Needs: []string{"user-namespace"},
			Why: "The subject is the bare login name, so the binding has no effect if the API server adds a prefix " +
				"to usernames.",
			References: []string{hookSource + "/rolebinding.yaml"},
			Run:        userBindings,
		},
		{
			Name: "user-service-account", Title: "The namespace's default ServiceAccount exists", On: steps.Remote,
			When: hasTrialUser, Needs: []string{"user-namespace"}, Timeout: 30 * time.Second,
			Why:        "The apps' pods run as this ServiceAccount, and the hook adds the pull Secret to it.",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh"},
			Run:        userAccount,
		},
		{
			Name: "cidr-covers-nodes", Title: "The allowed CIDR contains the nodes", On: steps.Remote, When: hasCIDR,
			Needs: []string{"signed-in"},
			Why: "The portal reaches apps through node ports, and nodes forward with their own address. A policy that " +
				"allows only the web node blocks all traffic.",
			References: []string{
				hookSource + "/network-policy.yaml", "https://kubernetes.io/docs/tutorials/services/source-ip/",
			},
			Run: cidrCovers,
		},
	}
}

func hasCIDR(e steps.Env) bool { return e.Answers.Text("hooks.allow-cidr") != "" }

// loginFix returns the fix that makes the hook run again for user.
func loginFix(user string) string {
	return "have " + user + " restart their web server (Help > Restart Web Server in the portal); on the web node: " +
		"journalctl -t ood_nginx_stage    # the hook's output"
}

func trialUser(e steps.Env) (user, ns string) {
	user = e.Answers.Text("trial.user")
	return user, hookNamespace(e, user)
}

// recreateFix returns the fix for an object that is missing or wrong. If carrick creates the trial namespaces, the fix
// applies the step trial. Otherwise the hook must run again.
func recreateFix(e steps.Env, user string) string {
	if makesTrial(e) {
		return e.ApplyStep("trial")
	}
	return loginFix(user)
}

func userSpace(ctx context.Context, e steps.Env) steps.Result {
	user, name := trialUser(e)
	if bad := validation.IsDNS1123Label(name); len(bad) > 0 {
		return steps.Failed(
			fmt.Sprintf("%s is not a valid namespace name: %s", name, strings.Join(bad, "; ")),
			"set trial.user to another user: the hook uses the login name unchanged, so this user cannot run apps on Kubernetes",
		)
	}
	ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", name)
	if apierrors.IsNotFound(err) {
		return steps.Undone("namespace " + name + " does not exist").Or(recreateFix(e, user))
	}
	if err != nil {
		return steps.Errored(err)
	}
	seen, err := strconv.ParseInt(ns.Annotations[seenNote], 10, 64)
	switch {
	case ns.Status.Phase == corev1.NamespaceTerminating:
		return steps.Failed(
			"namespace "+name+" is being deleted",
			e.Kubectl()+" get namespace "+name+" -o jsonpath='{.status.conditions}'    # shows what blocks the deletion",
		)
	case ns.Labels[userLabel] != userValue:
		return steps.Failed(
			fmt.Sprintf("namespace %s has no label %s=%s, so reapers and policies ignore it", name, userLabel, userValue),
			recreateFix(e, user),
		)
	case err != nil:
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s has no annotation %s with a time, which the namespace reaper requires", name,
				seenNote,
			),
			recreateFix(e, user),
		)
	}
	return steps.Passed("%s; the hook last ran on %s", name, time.Unix(seen, 0).Format(time.DateTime))
}

func userFence(ctx context.Context, e steps.Env) steps.Result {
	user, ns := trialUser(e)
	p, err := check.Get[networkingv1.NetworkPolicy](ctx, e.Cluster, check.NetworkPolicies, ns, fencePolicy)
	if err != nil {
		return check.Missing(err, "NetworkPolicy "+ns+"/"+fencePolicy, recreateFix(e, user))
	}
	at := "NetworkPolicy " + ns + "/" + fencePolicy
	if len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) > 0 {
		return steps.Failed(at+" selects only some of the pods", recreateFix(e, user))
	}
	if len(p.Spec.PolicyTypes) > 0 && !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
		return steps.Failed(at+" does not restrict ingress", recreateFix(e, user))
	}
	var cidrs []string
	own := false
	for _, rule := range p.Spec.Ingress {
		if len(rule.From) == 0 {
			return steps.Failed(at+" allows ingress from everywhere", recreateFix(e, user))
		}
		for _, from := range rule.From {
			switch {
			case from.IPBlock != nil:
				cidrs = append(cidrs, from.IPBlock.CIDR)
			case from.NamespaceSelector != nil:
				return steps.Failed(at+" allows ingress from pods of other namespaces", recreateFix(e, user))
			case from.PodSelector != nil:
				own = true
			}
		}
	}
	want := e.Answers.Text("hooks.allow-cidr")
	switch {
	case !own:
		return steps.Failed(at+" blocks traffic between the user's own pods", recreateFix(e, user))
	case want != "" && !slices.Contains(cidrs, want):
		return steps.Failed(
			fmt.Sprintf(
				"%s allows %s, but hooks.allow-cidr is %s", at, cmp.Or(strings.Join(cidrs, ", "), "no CIDR"),
				want,
			),
			recreateFix(e, user),
		)
	}
	app := map[string]string{managedLabel: userValue}
	opened, err := check.OpenedBy(ctx, e.Cluster, ns, app, fencePolicy)
	if err != nil {
		return steps.Errored(err)
	}
	if len(opened) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"NetworkPolicy %s in namespace %s allows ingress from everywhere despite %s: NetworkPolicies are additive",
				strings.Join(opened, ", "), ns, fencePolicy,
			),
			fmt.Sprintf("%s -n %s delete networkpolicy %s", e.Kubectl(), ns, strings.Join(opened, " ")),
		)
	}
	return steps.Passed("the user's own pods and %s are allowed", cmp.Or(strings.Join(cidrs, ", "), "nothing else"))
}

// expectedBinding is a RoleBinding that the hook creates (OSC/ondemand: hooks/k8s-bootstrap/yaml/rolebinding.yaml and
// job-pod-reaper.yaml, e5bbaf1d7).
type expectedBinding struct {
	name, role string
	subject    rbacv1.Subject
}

func expectedBindings(e steps.Env, user, ns string) []expectedBinding {
	sa := func(ns, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}
	}
	out := []expectedBinding{
		{user + "-ood-initializer", initializer, sa(ns, "default")},
		{user + "-ood-user", userRole, rbacv1.Subject{Kind: rbacv1.UserKind, Name: user}},
	}
	if usesWalltime(e) {
		out = append(out, expectedBinding{user + "-job-pod-reaper-rolebinding", reaperName, sa(reaperName, reaperName)})
	}
	return out
}

// bindFix returns the fix that creates a RoleBinding as the hook does.
func bindFix(e steps.Env, user, ns string, want expectedBinding) string {
	if makesTrial(e) {
		return e.ApplyStep("trial")
	}
	subject := "--user=" + steps.Quoted(want.subject.Name)
	if want.subject.Kind == rbacv1.ServiceAccountKind {
		subject = "--serviceaccount=" + want.subject.Namespace + ":" + want.subject.Name
	}
	return fmt.Sprintf(
		"%s -n %s create rolebinding %s --clusterrole=%s %s    # or %s", e.Kubectl(), ns, steps.Quoted(want.name), want.role,
		subject, loginFix(user),
	)
}

func userBindings(ctx context.Context, e steps.Env) steps.Result {
	user, ns := trialUser(e)
	for _, want := range expectedBindings(e, user, ns) {
		b, err := check.Get[rbacv1.RoleBinding](ctx, e.Cluster, check.RoleBindings, ns, want.name)
		if err != nil {
			return check.Missing(err, "RoleBinding "+ns+"/"+want.name, bindFix(e, user, ns, want))
		}
		if b.RoleRef.Kind != "ClusterRole" || b.RoleRef.Name != want.role {
			return steps.Failed(
				fmt.Sprintf(
					"RoleBinding %s/%s binds %s %s, not ClusterRole %s", ns, b.Name, b.RoleRef.Kind, b.RoleRef.Name, want.role,
				),
				e.Kubectl()+" -n "+ns+" delete rolebinding "+steps.Quoted(b.Name)+" && "+bindFix(e, user, ns, want),
			)
		}
		named := func(s rbacv1.Subject) bool {
			// RBAC ignores the namespace of a User.
			return s.Kind == want.subject.Kind && s.Name == want.subject.Name &&
				(s.Kind == rbacv1.UserKind || s.Namespace == want.subject.Namespace)
		}
		if !slices.ContainsFunc(b.Subjects, named) {
			var who []string
			for _, s := range b.Subjects {
				who = append(who, s.Kind+" "+s.Name)
			}
			return steps.Failed(
				fmt.Sprintf(
					"RoleBinding %s/%s names %s, not %s %s", ns, b.Name, cmp.Or(strings.Join(who, ", "), "no subject"),
					want.subject.Kind, want.subject.Name,
				),
				recreateFix(e, user),
			)
		}
	}
	return steps.Passed("User %s and the ServiceAccounts are bound to their roles", user)
}

func userAccount(ctx context.Context, e steps.Env) steps.Result {
	user, ns := trialUser(e)
	space, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", ns)
	if err != nil {
		return check.Missing(err, "namespace "+ns, recreateFix(e, user))
	}
	sa, err := check.Get[corev1.ServiceAccount](ctx, e.Cluster, check.ServiceAccounts, ns, "default")
	if apierrors.IsNotFound(err) {
		return steps.Waits(
			space.CreationTimestamp.Time, "namespace %s has no ServiceAccount default yet", ns,
		).Or("check that kube-controller-manager runs: " + e.Kubectl() + " -n kube-system get pods -l " +
			"component=kube-controller-manager")
	}
	if err != nil {
		return steps.Errored(err)
	}
	pull := e.Answers.Text("registry.secret")
	if !e.Answers.Bool("registry.enabled") || pull == "" || makesTrial(e) {
		return steps.Passed("%s/default", ns)
	}
	if !slices.ContainsFunc(sa.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return r.Name == pull }) {
		return steps.Failed(
			fmt.Sprintf(
				"ServiceAccount %s/default does not name the pull Secret %s, so private images cannot be pulled", ns, pull,
			),
			loginFix(user),
		)
	}
	return steps.Passed("ServiceAccount %s/default, which pulls with Secret %s", ns, pull)
}

func cidrCovers(_ context.Context, e steps.Env) steps.Result {
	text := e.Answers.Text("hooks.allow-cidr")
	allowed, err := netip.ParsePrefix(text)
	if err != nil {
		return steps.Errored(err)
	}
	nodes, err := e.Own.List("node-addresses")
	if err != nil {
		return steps.Errored(err)
	}
	out := outside(allowed, nodes)
	if len(out) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"%s does not contain %d of the nodes' %d addresses: %s. Traffic through those nodes is dropped", text, len(out),
				len(nodes), few(out),
			),
			"set hooks.allow-cidr to a CIDR that contains the nodes and the web node; the hook accepts only one CIDR",
		)
	}
	web, err := e.Peer.List("web-node-addresses")
	if err != nil {
		return steps.Passed("%s contains all %d node addresses; the web node's addresses are unknown", text, len(nodes))
	}
	if len(outside(allowed, web)) == len(web) {
		return steps.Warned(
			fmt.Sprintf(
				"%s contains none of the web node's addresses (%s). If a node does not forward with its own address, the policy "+
					"blocks the portal",
				text, few(web),
			),
			"set hooks.allow-cidr to a CIDR that contains the nodes and the web node",
		)
	}
	return steps.Passed("%s contains all %d node addresses and the web node's addresses", text, len(nodes))
}

// outside returns the addresses in list that have the IP family of p but are not in p.
func outside(p netip.Prefix, list []string) []string {
	var out []string
	for _, text := range list {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() == p.Addr().Is4() && !p.Contains(a) {
			out = append(out, text)
		}
	}
	return out
}
