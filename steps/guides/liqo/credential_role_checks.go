package liqo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// everyVerb lists the verbs that Liqo's ClusterRole for consumers grants on each of its resources.
var everyVerb = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// copied lists the rules for the resources that Liqo copies to the provider before a slice is accepted. renewed lists
// the rules for the resource with which Liqo renews its own certificates. Older charts do not grant the rules in
// renewed.
var (
	copied  = []rbacv1.PolicyRule{onLiqo("authentication", "resourceslices"), onLiqo("offloading", "namespacemaps")}
	renewed = []rbacv1.PolicyRule{onLiqo("authentication", "renews")}
)

func onLiqo(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{group + ".liqo.io"}, Resources: []string{resource, resource + "/status"}, Verbs: everyVerb,
	}
}

func consumersRole(ctx context.Context, e steps.Env) steps.Result {
	found, err := check.List[rbacv1.ClusterRole](
		ctx, e.Cluster, check.ClusterRoles, "", cluster.Selector{Labels: roleLabel},
	)
	if err != nil {
		return steps.Errored(err)
	}
	reinstall := chartAgain(ctx, e) + "    # the chart contains the ClusterRole"
	if len(found) == 0 {
		return steps.Failed("no ClusterRole has the label "+roleLabel, reinstall)
	}
	role := found[0]
	if len(found) > 1 {
		return steps.Failed(
			fmt.Sprintf("%d ClusterRoles have the label %s: %s, %s", len(found), roleLabel, found[0].Name, found[1].Name),
			"delete the ClusterRole that does not belong to the installed Helm release",
		)
	}
	return judgeRole(role, reinstall, upgrade(ctx, e, renewsSince))
}

// judgeRole verifies that a ClusterRole grants exactly the permissions that consumers require.
func judgeRole(role *rbacv1.ClusterRole, reinstall, newer string) steps.Result {
	if ok, lacking := validation.Covers(role.Rules, copied); !ok {
		return steps.Failed(fmt.Sprintf("ClusterRole %s lacks these rules: %s", role.Name, rulesInWords(lacking)), reinstall)
	}
	if ok, more := validation.Covers(append(append([]rbacv1.PolicyRule{}, copied...), renewed...), role.Rules); !ok {
		return steps.Warned(
			fmt.Sprintf("ClusterRole %s grants more than Liqo requires: %s", role.Name, rulesInWords(more)),
			"remove these rules, which apply to every consumer: "+reinstall,
		)
	}
	if ok, _ := validation.Covers(role.Rules, renewed); !ok {
		return steps.Warned(
			fmt.Sprintf(
				"ClusterRole %s grants no access to renews, so certificates of ResourceSlices expire without renewal", role.Name,
			),
			newer,
		)
	}
	return steps.Passed("ClusterRole %s grants access to resourceslices, namespacemaps and renews", role.Name)
}

func rulesInWords(rules []rbacv1.PolicyRule) string {
	return check.FirstOf(check.RuleSummaries(rules), 4, "; ")
}

func roleBound(ctx context.Context, e steps.Env) steps.Result {
	user, err := e.Peer.Text("credential-user")
	if err != nil {
		return steps.Errored(err)
	}
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	role, err := e.Own.Text("controlplane-role")
	if err != nil {
		return steps.Errored(err)
	}
	all, err := check.List[rbacv1.RoleBinding](ctx, e.Cluster, check.RoleBindings, tenantNamespace(e), cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	r := judgeBindings(all, role, user, id)
	if r.Status == steps.Fail {
		if now, err := tenantCondition(ctx, e); err == nil && now == drained {
			r.Found += "; the Tenant is drained, so Liqo has deleted the RoleBinding"
			r.Fix = activate(e, now)
		}
	}
	return r
}

// tenantCondition returns the condition of the Tenant in the namespace of the peering, or "" if
// there is none.
func tenantCondition(ctx context.Context, e steps.Env) (string, error) {
	found, err := living(ctx, e, tenants, tenantNamespace(e), "")
	if err != nil || len(found) == 0 {
		return "", err
	}
	return text(found[0], "spec", "tenantCondition"), nil
}

// judgeBindings verifies that one of the RoleBindings grants the ClusterRole to the user and is labelled with the
// consumer's cluster id.
func judgeBindings(all []*rbacv1.RoleBinding, role, user, id string) steps.Result {
	var others []string
	for _, b := range all {
		ours := b.RoleRef.Kind == "ClusterRole" && b.RoleRef.Name == role
		named := slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return check.IsUser(s, user) })
		switch {
		case ours && named && b.Labels[remoteIDLabel] != id:
			return steps.Warned(
				fmt.Sprintf(
					"RoleBinding %s grants the role to %s, but lacks the label %s=%s that liqoctl uses", b.Name, user,
					remoteIDLabel, id,
				),
				"",
			)
		case ours && named:
			return steps.Passed("RoleBinding %s grants the role to %s", b.Name, user)
		case ours:
			others = append(
				others, fmt.Sprintf("RoleBinding %s grants the role to %s, not to %s", b.Name, subjectsInWords(b.Subjects), user),
			)
		case named, b.Name == usualBinding:
			others = append(
				others,
				fmt.Sprintf(
					"RoleBinding %s grants %s %s to %s, not ClusterRole %s", b.Name, b.RoleRef.Kind, b.RoleRef.Name,
					subjectsInWords(b.Subjects), role,
				),
			)
		}
	}
	if len(others) > 0 {
		return steps.Failed(strings.Join(others, "; "), "")
	}
	return steps.Undone(fmt.Sprintf("no RoleBinding grants ClusterRole %s to %s", role, user))
}

func subjectsInWords(subjects []rbacv1.Subject) string {
	var out []string
	for _, s := range subjects {
		name := s.Name
		if s.Namespace != "" {
			name = s.Namespace + "/" + name
		}
		out = append(out, s.Kind+" "+name)
	}
	if len(out) == 0 {
		return "no subject"
	}
	return strings.Join(out, ", ")
}
