package ondemand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// rolesFile is the asset with the three ClusterRoles. Checks compare the ClusterRoles in the cluster with this asset.
const rolesFile = "cluster-roles.yaml"

// rolesSource is the upstream file that defines the ClusterRoles.
const rolesSource = "OSC/ondemand: hooks/k8s-bootstrap/ondemand.yaml"

func bootstrap() steps.Step {
	return steps.Step{
		Name: "bootstrap", Title: "Bootstrap",
		Map: steps.MapRow{Remote: "ServiceAccount, roles"},
		Why: "At each login, root on the web node creates the user's namespace with one ServiceAccount. This account has " +
			"every permission that users get, including access to Secrets in all namespaces, so guard its token like " +
			"an admin's.",
		Facts: []steps.Fact{
			{
				Name: "cluster-ca", Title: "the API server's CA", On: steps.Remote, Shared: true, Learn: check.ContextCA(noCA),
			},
			{Name: "server-version", Title: "the API server's version", On: steps.Remote, Shared: true, Learn: check.VersionOf},
		},
		Actions: []steps.Action{
			{
				Name: "namespace", Title: "Create the namespace of the ServiceAccount", On: steps.Remote,
				Needs: []string{"signed-in"}, Doer: action.Manifest{File: "namespace.yaml"},
			},
			{
				Name: "service-account", Title: "Create the ServiceAccount", On: steps.Remote, Needs: []string{"namespace"},
				Doer: action.Manifest{File: "service-account.yaml"},
			},
			{
				Name: "cluster-roles", Title: "Grant the hooks' permissions and define users' roles", On: steps.Remote,
				Needs: []string{"signed-in"}, Doer: rolesDoer{action.Manifest{File: rolesFile}},
			},
		},
		Checks: bootstrapChecks(),
	}
}

// rolesDoer creates the ClusterRoles. Its undo lists the users' namespaces, which the hook has created.
type rolesDoer struct{ action.Manifest }

func (d rolesDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Manifest.PlanUndo(ctx, e)
	if err != nil || !slices.ContainsFunc(c.Items, func(it steps.Item) bool { return it.Verb.Changes() }) {
		return c, err
	}
	all, err := userNamespaces(ctx, e)
	if err != nil {
		return c, ctx.Err() // their names are unknown
	}
	var names []string
	for _, ns := range all {
		ofLink := slices.ContainsFunc(slices.Collect(maps.Keys(ns.Labels)), func(key string) bool {
			return strings.HasPrefix(key, steps.LinkLabelPrefix)
		})
		if ns.DeletionTimestamp == nil && !ofLink {
			names = append(names, ns.Name)
		}
	}
	if len(names) > 0 {
		c.Items = append(c.Items, steps.Item{
			Verb: steps.Leave, ByOthers: true, What: "the users' namespaces " + few(names),
			Note: fmt.Sprintf(
				"the hook of this portal, or of another one, created them, and users' apps may run in them. To delete one with "+
					"everything in it: %s delete namespace %s",
				e.Kubectl(), names[0],
			),
		})
	}
	return c, nil
}

const noCA = "your cluster context has no CA, so it trusts the system's CAs"

// meant returns the rules of the given ClusterRole in the asset.
func meant(e steps.Env, file, role string) ([]rbacv1.PolicyRule, error) {
	data, err := fs.ReadFile(e.Assets, file)
	if err != nil {
		return nil, fmt.Errorf("read asset: %w", err)
	}
	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var r rbacv1.ClusterRole
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("asset %s: no role named %s", file, role)
		} else if err != nil {
			return nil, fmt.Errorf("asset %s: %w", file, err)
		}
		if r.Name == role && len(r.Rules) > 0 {
			return r.Rules, nil
		}
	}
}

// hooksAccount is the ServiceAccount that the hooks use. accountUser is its Kubernetes user name.
var (
	hooksAccount = check.Account{Namespace: namespace, Name: account}
	accountUser  = hooksAccount.Username()
)

// isAccount reports whether s is the ServiceAccount or a group of ServiceAccounts that contains it.
func isAccount(s rbacv1.Subject) bool {
	group := s.Name == "system:serviceaccounts" || s.Name == "system:serviceaccounts:"+namespace
	return hooksAccount.Is(s) || s.Kind == rbacv1.GroupKind && group
}

// granted returns the ServiceAccount's bindings in the given namespace. If in is "", it returns the bindings that apply
// in all namespaces.
func granted(ctx context.Context, e steps.Env, in string) ([]check.Binding, error) {
	all, err := check.Granted(ctx, e.Cluster, in, isAccount)
	for i := range all {
		all[i].Rules = slices.DeleteFunc(all[i].Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 })
	}
	// Omit bindings to non-resource URLs only, such as the ServiceAccount issuer's keys. Every account has them.
	return slices.DeleteFunc(all, func(b check.Binding) bool { return !b.Missing && len(b.Rules) == 0 }), err
}

// ruleWords formats rules for a finding: "create,patch secrets; list nodes".
func ruleWords(rules []rbacv1.PolicyRule) string {
	verbs, order := map[string][]string{}, []string{}
	for _, r := range rules {
		for _, res := range r.Resources {
			for _, g := range r.APIGroups {
				what := res
				if g != "" && g != "*" {
					what += "." + g
				}
				if len(r.ResourceNames) > 0 {
					what += " named " + strings.Join(r.ResourceNames, ",")
				}
				if verbs[what] == nil {
					order = append(order, what)
				}
				for _, v := range r.Verbs {
					if !slices.Contains(verbs[what], v) {
						verbs[what] = append(verbs[what], v)
					}
				}
			}
		}
	}
	var words []string
	for _, what := range order {
		if what == "*" && slices.Contains(verbs[what], "*") {
			return "everything"
		}
		words = append(words, strings.Join(verbs[what], ",")+" "+what)
	}
	return strings.Join(words, "; ")
}
