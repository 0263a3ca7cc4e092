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

// withoutExcess adds the fix to the finding that the kubeconfig grants more than intended. It
// names the first binding that grants some of the excess, in the order of check.Grants, but with
// bindings that the cluster itself creates last. The fix applies roles and bindings that carrick
// created again; it never deletes them.
func withoutExcess(
	ctx context.Context, e steps.Env, excess map[string][]rbacv1.PolicyRule, found steps.Result,
) steps.Result {
	found.Fix = e.Kubectl() + " get rolebindings,clusterrolebindings -A -o wide | grep -E " +
		steps.Quoted(identityName(e)+"|system:(serviceaccounts|authenticated)") +
		"    # read their roles: one of them grants the excess"
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
			found.Fix = "link " + links[0] + " of carrick created that binding: run carrick apply for that link with " +
				"--step identity --take-over"
		case ofCarrick(e, g):
			found.Fix = e.ApplyStep("identity") + " --take-over    # someone added rules to " + g.Role
		default: // the role of a binding is immutable
			found.Fix = e.ApplyStep("identity") + " --take-over --replace    # someone recreated the binding with another role"
		}
		return found
	}
	return found
}

// last returns a sort key that sorts true after false.
func last(is bool) int {
	if is {
		return 1
	}
	return 0
}

// grantsSome reports whether rules that a binding grants in a namespace ("" means in all)
// include some of the excess.
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

// ofCarrick reports whether a binding that carrick created still refers to the role that carrick
// created with it.
func ofCarrick(e steps.Env, g check.Grant) bool {
	if g.Of != "" {
		return g.Role == "Role/"+identityName(e)
	}
	return g.Role == "ClusterRole/"+g.Binding
}
