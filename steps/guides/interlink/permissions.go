package interlink

import (
	"context"
	"slices"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/certs"
	"carrick/steps/check"
)

func mayMake(ctx context.Context, e steps.Env) steps.Result {
	rights := slices.Concat(endpointPermissions(e), kubeletPermissions(e), trialPermissions(e))
	e.Cluster.WillRead(check.SigningRequests, "") // read after the virtual node has started
	if mode(e) == byProxy {                       // read after the proxy exists
		e.Cluster.WillRead(check.EndpointSlices, space(e))
		e.Cluster.WillRead(check.Pods, space(e))
	}
	return check.MayMake(ctx, e, e.SideName(), rights, space(e), workloadNamespace(e), vkNamespace(e))
}

// endpointPermissions returns the permissions that carrick needs to expose the API.
func endpointPermissions(e steps.Env) []permission.Rule {
	if mode(e) != byProxy {
		return nil // carrick creates nothing: the endpoint exists, or another tool applies the exported files
	}
	out := slices.Concat(
		check.ToApply("", check.Namespaces),
		check.ToApply(space(e), check.ConfigMaps, check.Deployments, check.Services),
	)
	if len(e.Answers.List("exposure.sources")) > 0 {
		out = append(out, check.ToApply(space(e), check.NetworkPolicies)...)
	}
	switch {
	case endpointSignedBy(certs.ByCertManager)(e):
		return slices.Concat(
			out, check.ToApply(space(e), certs.Issuers, certs.Certificates), check.ToFollow(space(e), check.Secrets),
		)
	case endpointSignedBy(certs.ByCarrick)(e):
		return append(out, check.ToApply(space(e), check.Secrets)...)
	}
	return append(out, check.ToFollow(space(e), check.Secrets)...)
}

// kubeletPermissions returns the permissions to configure the virtual kubelet and to watch its restart.
func kubeletPermissions(e steps.Env) []permission.Rule {
	return slices.Concat(
		check.ToEdit(vkNamespace(e), check.ConfigMaps, check.Deployments),
		check.ToFollow(vkNamespace(e), check.Pods),
		check.Verbs("", "pods/log", vkNamespace(e), "get"),
	)
}

// trialPermissions returns the permissions for the test requests and the test Job, and for the jobs' Role.
func trialPermissions(e steps.Env) []permission.Rule {
	ns := workloadNamespace(e)
	out := slices.Concat(
		check.ToApply(ns, check.ConfigMaps),
		check.To([]string{"get", "create", "patch", "delete"}, ns, check.Secrets), // the Secrets that tokens are bound to
		check.Verbs("", "serviceaccounts/token", ns, "create"),
	)
	if holdsWatch(e) {
		out = append(out, check.ToApply(ns, check.ServiceAccounts, check.Roles, check.RoleBindings)...)
	}
	if forArgo(e) {
		out = append(out, check.ToApply(ns, check.Roles, check.RoleBindings)...)
		out = append(out, argoPermissions(ns)...) // users can only grant permissions that they have
	}
	if runsJob(e) {
		out = slices.Concat(
			out, check.ToApply(ns, check.Jobs), check.ToFollow(ns, check.Pods), check.Verbs("", "pods/log", ns, "get"),
		)
	}
	return out
}
