package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
)

// EveryAccount lists the permissions that every ServiceAccount has on every cluster. Each can review its own
// permissions (system:basic-user). From Kubernetes 1.37 on, each can also read trust bundles, which contain CA
// certificates and no secret (system:cluster-trust-bundle-discovery;
// kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
var EveryAccount = []rbacv1.PolicyRule{
	{
		APIGroups: []string{"authorization.k8s.io", "authentication.k8s.io"},
		Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"},
		Verbs:     []string{"create"},
	},
	{
		APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"clustertrustbundles"},
		Verbs: []string{"get", "list", "watch"},
	},
}

// PullsImages allows pulling the images of a namespace's image streams. OpenShift grants it to all ServiceAccounts of
// the namespace through the RoleBinding system:image-pullers. An OpenShift controller recreates that RoleBinding
// (openshift/openshift-controller-manager: pkg/authorization/defaultrolebindings/defaultrolebindings.go;
// openshift/openshift-apiserver: pkg/bootstrappolicy/policy.go).
var PullsImages = rbacv1.PolicyRule{
	APIGroups: []string{"", "image.openshift.io"}, Resources: []string{"imagestreams/layers"}, Verbs: []string{"get"},
}

// PullsOnly reports whether OpenShift created a binding and the binding grants no more than PullsImages in the
// accounts' namespace.
func PullsOnly(ctx context.Context, c *cluster.Cluster, g Grant) bool {
	if !g.Bootstrap() || g.Of != g.Space {
		return false
	}
	rules, err := RulesOf(ctx, c, g.RoleRef(), g.Of)
	if err != nil {
		return false
	}
	ok, _ := validation.Covers([]rbacv1.PolicyRule{PullsImages}, rules)
	return ok
}

// harmful returns permissions that no credential of a guide should have. Each is reviewed separately, because an API
// server might not list all permissions of a user.
func harmful(namespace string) []permission.Rule {
	return slices.Concat(
		Verbs("", "secrets", namespace, "list"),
		Verbs("", "pods", namespace, "create"),
		Verbs("", "pods/exec", namespace, "create"),
		Verbs("", "serviceaccounts/token", namespace, "create"),
		Verbs("rbac.authorization.k8s.io", "rolebindings", namespace, "create"),
	)
}

// OnlyWithin verifies that a credential has no permissions beyond the rules in meant. meant maps each namespace to its
// rules. meant[""] contains the cluster-wide rules. All requests run concurrently.
func OnlyWithin(
	ctx context.Context, credential *cluster.Cluster, meant map[string][]rbacv1.PolicyRule, namespaces []string,
	fix string,
) steps.Result {
	r, _ := Excess(ctx, credential, meant, namespaces)
	if r.Status == steps.Fail {
		r.Fix = fix
	}
	return r
}

// Excess is like OnlyWithin without a fix. It also returns the excess rules of each namespace.
func Excess(
	ctx context.Context, credential *cluster.Cluster, meant map[string][]rbacv1.PolicyRule, namespaces []string,
) (steps.Result, map[string][]rbacv1.PolicyRule) {
	found := make([]excess, len(namespaces))
	group, ctx := errgroup.WithContext(ctx)
	for i, ns := range namespaces {
		group.Go(func() (err error) {
			found[i], err = beyond(ctx, credential, ns, slices.Concat(meant[ns], meant[""], EveryAccount))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return steps.Errored(err), nil
	}
	var words []string
	partial, rules := false, map[string][]rbacv1.PolicyRule{}
	for i, f := range found {
		partial = partial || f.partial
		rules[namespaces[i]] = f.rules
		for _, r := range f.rules {
			words = append(words, namespaces[i]+": "+ruleInFull(r))
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	where := strings.Join(namespaces, ", ")
	if len(words) > 0 {
		const said = "the account has permissions that it does not need: %s (checked in %s)"
		return steps.Failed(fmt.Sprintf(said, strings.Join(words, "; "), where), ""), rules
	}
	if partial {
		return steps.Passed(
			"no permissions beyond its roles in %s; the server does not list all permissions, so the harmful ones were "+
				"checked one by one",
			where,
		), nil
	}
	return steps.Passed("no permissions beyond its roles in %s", where), nil
}

// excess lists the permissions that a credential has in one namespace beyond the expected rules.
type excess struct {
	rules   []rbacv1.PolicyRule
	partial bool // the server's list of permissions is incomplete
}

func beyond(
	ctx context.Context, credential *cluster.Cluster, namespace string, allowed []rbacv1.PolicyRule,
) (excess, error) {
	var out excess
	var granted []rbacv1.PolicyRule
	var decisions []cluster.Decision
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		granted, _, out.partial, err = credential.Rules(ctx, namespace)
		return err
	})
	group.Go(func() (err error) {
		decisions, err = credential.Can(ctx, harmful(namespace)...)
		return err
	})
	if err := group.Wait(); err != nil {
		return out, err
	}
	if ok, more := validation.Covers(allowed, granted); !ok {
		out.rules = append(out.rules, more...)
	}
	for _, d := range decisions {
		if d.Err != nil {
			return out, d.Err
		}
		rule := steps.RuleOf(d.Rule)
		if ok, _ := validation.Covers(allowed, []rbacv1.PolicyRule{rule}); d.Allowed && !ok {
			out.rules = append(out.rules, rule)
		}
	}
	return out, nil
}

// RuleSummaries returns a short string for each rule, such as "get,list pods,services".
func RuleSummaries(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, strings.Join(r.Verbs, ",")+" "+strings.Join(r.Resources, ","))
	}
	return out
}

func ruleInFull(r rbacv1.PolicyRule) string {
	if len(r.NonResourceURLs) > 0 {
		return strings.Join(r.Verbs, ",") + " " + strings.Join(r.NonResourceURLs, ",")
	}
	var res []string
	for _, x := range r.Resources {
		for _, g := range r.APIGroups {
			if g != "" && g != "*" {
				x += "." + g
			}
			res = append(res, x)
		}
	}
	words := strings.Join(r.Verbs, ",") + " " + strings.Join(res, ",")
	if len(r.ResourceNames) > 0 {
		words += " named " + strings.Join(r.ResourceNames, ",")
	}
	return words
}
