package renku

import (
	"context"
	"maps"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// withoutExcess adds the fix to the finding that the kubeconfig grants more than meant: it names the first binding that
// grants more. Of what carrick created, the roles are applied again, and no binding is deleted.
func withoutExcess(
	ctx context.Context, e steps.Env, meant map[string][]rbacv1.PolicyRule, found steps.Result,
) steps.Result {
	found.Fix = e.Kubectl() + " get rolebindings,clusterrolebindings -A -o wide | grep -E " +
		steps.Quoted(identityName(e)+"|system:(serviceaccounts|authenticated)") +
		"    # read their roles: one of them grants it"
	grants, err := check.Grants(ctx, e.Cluster, sessionsNamespace(e))
	if err != nil {
		return found
	}
	for _, g := range grants {
		if g.Account != "" && g.Account != identityName(e) {
			continue
		}
		rules, err := check.RulesOf(ctx, e.Cluster, g.RoleRef(), g.Of)
		allowed := slices.Concat(meant[g.Of], meant[""], check.EveryAccount)
		if ok, _ := validation.Covers(allowed, rules); err != nil || ok {
			continue
		}
		found.Found += ". By: " + g.String()
		links := carrickLinks(g.Labels)
		switch {
		case len(links) == 0:
			found.Fix = g.Without(e.Kubectl())
		case !slices.Contains(links, e.Link):
			found.Fix = "link " + links[0] + " of carrick created that binding: run carrick apply for that link with " +
				"--step identity --take-over"
		case ofCarrick(e, g):
			found.Fix = e.ApplyStep("identity") + " --take-over    # someone added rules to " + g.Role
		default: // a role can't be changed in a binding
			found.Fix = e.ApplyStep("identity") + " --take-over --replace    # someone recreated the binding with another role"
		}
		return found
	}
	return found
}

// ofCarrick reports whether a binding of carrick's refers to the role that carrick creates with it.
func ofCarrick(e steps.Env, g check.Grant) bool {
	if g.Of != "" {
		return g.Role == "Role/"+identityName(e)
	}
	return g.Role == "ClusterRole/"+g.Binding
}

// carrickLinks are the links whose labels an object has, in order.
func carrickLinks(labels map[string]string) []string {
	var out []string
	for key := range maps.Keys(labels) {
		if link, is := strings.CutPrefix(key, "carrick/link."); is {
			out = append(out, link)
		}
	}
	slices.Sort(out)
	return out
}
