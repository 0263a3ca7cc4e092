package renku

import (
	"context"
	"maps"
	"slices"

	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// withoutExcess completes found, the finding that the kubeconfig has excess permissions. It adds a
// fix and, if possible, the name of a binding that grants some of these permissions. It considers
// the cluster's built-in bindings last. If carrick created the binding, the fix is an apply command
// that restores the binding and its role.
func withoutExcess(
	ctx context.Context, e steps.Env, excess map[string][]rbacv1.PolicyRule, found steps.Result,
) steps.Result {
	found.Fix = e.Kubectl() + " get rolebindings,clusterrolebindings -A -o wide | grep -E " +
		steps.Quoted(identityName(e)+"|system:(serviceaccounts|authenticated)") +
		"    # read their roles to find the role that grants the excess permissions"
	grants, err := check.Grants(ctx, e.Cluster, sessionsNamespace(e))
	if err != nil {
		return found
	}
	slices.SortStableFunc(grants, func(a, b check.Grant) int { return last(a.Bootstrap()) - last(b.Bootstrap()) })
	for _, g := range grants {
		if g.Account != "" && g.Account != identityName(e) {
			continue
		}
		rules, err := check.RulesOf(ctx, e.Cluster, g.RoleRef(), g.Of)
		if err != nil || !grantsSome(rules, g.Of, excess) {
			continue
		}
		found.Found += ". Granted by: " + g.String()
		links := slices.Sorted(maps.Keys(inventory.OtherLinks(g.Labels, "")))
		switch {
		case len(links) == 0:
			found.Fix = g.Without(e.Kubectl())
		case !slices.Contains(links, e.Link):
			found.Fix = "carrick link " + links[0] + " created the binding: run carrick apply for that link with " +
				"--step identity --take-over"
		case ofCarrick(e, g):
			found.Fix = e.ApplyStep("identity") + " --take-over    # another user or tool added rules to " + g.Role
		default: // a binding's roleRef is immutable
			found.Fix = e.ApplyStep("identity") +
				" --take-over --replace    # another user or tool recreated the binding with another role"
		}
		return found
	}
	return found
}

// last is a sort key: false sorts before true.
func last(is bool) int {
	if is {
		return 1
	}
	return 0
}

// grantsSome reports whether rules grant some of the excess permissions. The parameter in is the
// namespace of the binding, or "" for a ClusterRoleBinding.
func grantsSome(rules []rbacv1.PolicyRule, in string, excess map[string][]rbacv1.PolicyRule) bool {
	for namespace, more := range excess {
		if in != "" && in != namespace {
			continue
		}
		for _, r := range more {
			if ok, _ := validation.Covers(rules, []rbacv1.PolicyRule{r}); ok {
				return true
			}
		}
	}
	return false
}

// ofCarrick reports whether a binding from carrick still refers to carrick's role.
func ofCarrick(e steps.Env, g check.Grant) bool {
	if g.Of != "" {
		return g.Role == "Role/"+identityName(e)
	}
	return g.Role == "ClusterRole/"+g.Binding
}
