package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
)

// MayI verifies that the user has all the permissions. The finding names each missing permission. fix is the fix for
// missing permissions.
func MayI(ctx context.Context, c *cluster.Cluster, rights []permission.Rule, fix string) steps.Result {
	if len(rights) == 0 {
		return steps.Skipped("no permission is required")
	}
	c.Need(rights...)
	decisions, err := c.Can(ctx, rights...)
	if err != nil {
		return steps.Errored(err)
	}
	var denied []cluster.Decision
	var words []string
	for _, d := range decisions {
		if d.Err != nil {
			return steps.Errored(fmt.Errorf("check whether you can %s: %w", d.Rule, d.Err))
		}
		if !d.Allowed {
			denied = append(denied, d)
			words = append(words, d.Rule.String())
		}
	}
	if len(denied) == 0 {
		return steps.Passed("all %d permissions are granted", len(rights))
	}
	return steps.Failed(
		fmt.Sprintf("%d of %d permissions are missing: %s", len(denied), len(rights), strings.Join(words, "; ")), fix,
	)
}

// Verbs returns one permission per verb on one resource.
func Verbs(group, resource, namespace string, verbs ...string) []permission.Rule {
	var out []permission.Rule
	resource, sub, _ := strings.Cut(resource, "/")
	for _, v := range verbs {
		out = append(out, permission.Rule{Verb: v, Group: group, Resource: resource, Subresource: sub, Namespace: namespace})
	}
	return out
}

// To returns one permission per verb and resource in a namespace. If namespace is "", the permissions apply to the
// whole cluster.
func To(verbs []string, namespace string, kinds ...schema.GroupVersionResource) []permission.Rule {
	var out []permission.Rule
	for _, k := range kinds {
		out = append(out, Verbs(k.Group, k.Resource, namespace, verbs...)...)
	}
	return out
}

// ToFollow returns the permissions that a live read requires.
func ToFollow(namespace string, kinds ...schema.GroupVersionResource) []permission.Rule {
	return To([]string{"get", "list", "watch"}, namespace, kinds...)
}

// ToEdit returns the permissions to watch and change existing objects.
func ToEdit(namespace string, kinds ...schema.GroupVersionResource) []permission.Rule {
	return To([]string{"get", "list", "watch", "patch"}, namespace, kinds...)
}

// ToApply returns the permissions to create, change and watch objects.
func ToApply(namespace string, kinds ...schema.GroupVersionResource) []permission.Rule {
	return To([]string{"get", "list", "watch", "create", "patch"}, namespace, kinds...)
}

// MayMakeCheck returns the check "admin-permissions" of the first step. Its Run is run, which calls MayMake. why is the
// consequence of a missing permission. The check covers the local side. If both sides are clusters, set On to Both and
// use Env.Side in run.
func MayMakeCheck(why, source string, run func(context.Context, steps.Env) steps.Result) steps.Check {
	return steps.Check{
		Name: "admin-permissions", Title: "You have the permissions this guide needs", On: steps.Local,
		Needs:       []string{"signed-in"},
		Permissions: true, Why: why, References: []string{source}, Run: run,
	}
}

// MayMake is like MayI for the cluster of this side. It removes duplicate permissions. The argument who describes the
// cluster in the fix, such as "local cluster". The fix asks an admin of that cluster to grant all the permissions and
// to create missing namespaces, because a Role requires its namespace.
func MayMake(
	ctx context.Context, e steps.Env, who string, rights []permission.Rule, namespaces ...string,
) steps.Result {
	var once []permission.Rule
	for _, r := range rights {
		if !slices.Contains(once, r) {
			once = append(once, r)
		}
	}
	r := MayI(ctx, e.Cluster, once, "")
	if r.Status != steps.Fail {
		return r
	}
	var missing []string
	for _, ns := range namespaces {
		if _, err := e.Cluster.Get(ctx, Namespaces, "", ns); apierrors.IsNotFound(err) {
			missing = append(missing, ns)
		}
	}
	return r.Or("ask an admin of the " + who + " to apply these manifests and bind the role to you:\n" +
		steps.Grant("carrick-"+e.Link, once, missing...))
}

// NamespacesOf returns the distinct namespaces of the permissions, in their order.
func NamespacesOf(rights []permission.Rule) []string {
	var out []string
	for _, r := range rights {
		if r.Namespace != "" && !slices.Contains(out, r.Namespace) {
			out = append(out, r.Namespace)
		}
	}
	return out
}
