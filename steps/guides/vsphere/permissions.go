package vsphere

import (
	"context"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
)

// stepPermissions lists funcs in step order. Each func returns the permissions that one step
// requires in the guest cluster.
var stepPermissions = []func(steps.Env) []permission.Rule{
	storagePermissions, nfsPermissions, claimPermissions, securityPermissions, mutationPermissions, certificatePermissions,
	extensionPermissions, functionPermissions, profilePermissions,
}

func mayMakeAll(ctx context.Context, e steps.Env) steps.Result {
	e.Cluster.WillRead(check.ClusterRoleBindings, "") // to find Deployments that can create volumes
	e.Cluster.WillRead(check.ClusterRoles, "")
	e.Cluster.WillRead(check.LimitRanges, "") // to find the LimitRange that rejects a claim
	e.Cluster.WillRead(check.ResourceQuotas, "")
	e.Cluster.WillRead(check.ValidatingWebhooks, "")
	e.Cluster.WillRead(check.Services, "") // to explain why a webhook does not answer
	if usesNFS(e) {
		e.Cluster.WillRead(check.NetworkPolicies, nfsSpace(e))
		e.Cluster.WillRead(check.RoleBindings, "")
		e.Cluster.WillRead(check.Roles, nfsSpace(e)) // to find the permissions of the provisioner's ServiceAccount
	}
	var rights []permission.Rule
	for _, of := range stepPermissions {
		rights = append(rights, of(e)...)
	}
	return check.MayMake(ctx, e, e.SideName(), rights, check.NamespacesOf(rights)...)
}
