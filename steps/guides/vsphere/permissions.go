package vsphere

import (
	"context"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
)

// stepPermissions are functions that return the permissions of each step in the guest cluster, in
// the order of the steps.
var stepPermissions = []func(steps.Env) []permission.Rule{
	storagePermissions, nfsPermissions, claimPermissions, securityPermissions, mutationPermissions, certificatePermissions,
	extensionPermissions, functionPermissions, profilePermissions,
}

func mayMakeAll(ctx context.Context, e steps.Env) steps.Result {
	e.Cluster.WillRead(check.ClusterRoleBindings, "") // which Deployments are allowed to create volumes
	e.Cluster.WillRead(check.ClusterRoles, "")
	e.Cluster.WillRead(check.LimitRanges, "") // which of them rejects a claim
	e.Cluster.WillRead(check.ResourceQuotas, "")
	e.Cluster.WillRead(check.ValidatingWebhooks, "")
	e.Cluster.WillRead(check.Services, "") // of a webhook that does not answer
	if usesNFS(e) {
		e.Cluster.WillRead(check.NetworkPolicies, nfsSpace(e))
		e.Cluster.WillRead(check.RoleBindings, "")
		e.Cluster.WillRead(check.Roles, nfsSpace(e)) // what the provisioner's account is allowed to do
	}
	var rights []permission.Rule
	for _, of := range stepPermissions {
		rights = append(rights, of(e)...)
	}
	return check.MayMake(ctx, e, e.SideName(), rights, check.NamespacesOf(rights)...)
}
