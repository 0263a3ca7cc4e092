package vsphere

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// What it takes to follow an object, to edit one that is there, and to make one.
var (
	following = []string{"get", "list", "watch"}
	editing   = []string{"get", "list", "watch", "patch"}
	applying  = []string{"get", "list", "watch", "create", "patch"}
)

// stepRights are what each step takes of the guest cluster, in the order of the steps.
var stepRights = []func(steps.Env) []cluster.Right{
	storageRights, nfsRights, claimRights, securityRights, mutationRights, certificateRights, extensionRights, functionRights, profileRights,
}

func mayMakeCheck() steps.Check {
	return steps.Check{
		Name: "may-make", Title: "you may make what this guide makes", On: steps.Local, Needs: []string{"signed-in"}, Rights: true,
		Why: "a right that is missing half-way leaves a webhook without a server, or a class without a provisioner",
		See: []string{page}, Run: mayMake,
	}
}

func mayMake(ctx context.Context, e steps.Env) steps.Result {
	e.Cluster.WillRead(check.ClusterRoleBindings, "") // which Deployments may create volumes
	e.Cluster.WillRead(check.ClusterRoles, "")
	var once []cluster.Right
	for _, of := range stepRights {
		for _, r := range of(e) {
			if !slices.Contains(once, r) {
				once = append(once, r)
			}
		}
	}
	r := check.MayI(ctx, e.Cluster, once, "")
	if r.Status != steps.Fail {
		return r
	}
	var fresh []string
	for _, right := range once {
		ns := right.Namespace
		if ns == "" || slices.Contains(fresh, ns) {
			continue
		}
		if _, err := e.Cluster.Get(ctx, check.Namespaces, "", ns); apierrors.IsNotFound(err) {
			fresh = append(fresh, ns)
		}
	}
	return r.Or("ask an admin of the " + e.SideName() + " to apply this and bind it to you:\n" + steps.Grant("carrick-"+e.Link, once, fresh...))
}

// to are the rights to do something to some kinds; in "" they are cluster-wide.
func to(do []string, in string, kinds ...schema.GroupVersionResource) []cluster.Right {
	var out []cluster.Right
	for _, k := range kinds {
		out = append(out, check.Verbs(k.Group, k.Resource, in, do...)...)
	}
	return out
}
