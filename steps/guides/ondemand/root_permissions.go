package ondemand

import (
	"context"
	"fmt"
	"strings"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
)

// rootUses lists the permissions in upstream's ClusterRole. The hooks use these permissions or grant them to users.
var rootUses = []struct {
	group     string
	resources []string
	verbs     []string
}{
	{"", []string{"namespaces", "serviceaccounts"}, []string{"get", "create", "update", "patch"}},
	{"rbac.authorization.k8s.io", []string{"rolebindings", "roles"}, []string{"get", "create", "update", "patch"}},
	{
		"",
		[]string{"services", "pods", "configmaps", "secrets", "pods/log"},
		[]string{"get", "watch", "list", "create", "update", "patch", "delete"},
	},
	{"networking.k8s.io", []string{"networkpolicies"}, []string{"get", "create", "update", "patch"}},
}

func rootPermissions(ctx context.Context, e steps.Env) steps.Result {
	as, _, err := withRoot(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var rights []permission.Rule
	for _, u := range rootUses {
		for _, resource := range u.resources {
			rights = append(rights, check.Verbs(u.group, resource, "", u.verbs...)...)
		}
	}
	decisions, err := as.Can(ctx, rights...)
	if err != nil {
		return steps.Errored(err)
	}
	lacks := map[string][]string{} // missing verbs by resource
	var order []string
	for _, d := range decisions {
		if d.Err != nil {
			return steps.Errored(fmt.Errorf("checking whether root can %s: %w", d.Rule, d.Err))
		}
		if d.Allowed {
			continue
		}
		what := strings.TrimPrefix(d.Rule.String(), d.Rule.Verb+" ")
		if lacks[what] == nil {
			order = append(order, what)
		}
		lacks[what] = append(lacks[what], d.Rule.Verb)
	}
	if len(order) == 0 {
		return steps.Passed("root has all %d permissions of upstream's ClusterRole, in every namespace", len(rights))
	}
	var words []string
	for _, what := range order {
		words = append(words, strings.Join(lacks[what], ",")+" "+what)
	}
	return steps.Failed("root cannot: "+strings.Join(words, "; "), e.ApplyStep("bootstrap"))
}

func rootRenews(ctx context.Context, e steps.Env) steps.Result {
	as, _, err := withRoot(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	right := permission.Rule{
		Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: namespace, Name: account,
	}
	decisions, err := as.Can(ctx, right)
	switch {
	case err != nil:
		return steps.Errored(err)
	case !decisions[0].Allowed:
		return steps.Failed("root cannot "+right.String(), e.ApplyStep("token")).Symptom()
	}
	return steps.Passed("root can %s", right)
}
