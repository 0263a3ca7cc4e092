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
	e.Cluster.WillRead(check.SigningRequests, "") // once the virtual node runs
	if mode(e) == byProxy {                       // looked at once it is there
		e.Cluster.WillRead(check.EndpointSlices, space(e))
		e.Cluster.WillRead(check.Pods, space(e))
	}
	return check.MayMake(ctx, e, e.SideName(), rights, space(e), workloadNamespace(e), vkNamespace(e))
}

// endpointRights are for what opens a way to the API.
func endpointPermissions(e steps.Env) []permission.Rule {
	if mode(e) != byProxy {
		return nil // nothing is made: it is there, or files are written for who makes it
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

// kubeletRights are for what the virtual kubelet is told, and to see it start with
// that.
func kubeletPermissions(e steps.Env) []permission.Rule {
	return slices.Concat(
		check.ToEdit(vkNamespace(e), check.ConfigMaps, check.Deployments),
		check.ToFollow(vkNamespace(e), check.Pods),
		check.Verbs("", "pods/log", vkNamespace(e), "get"),
	)
}

// trialRights are for what is tried, and for what jobs are given.
func trialPermissions(e steps.Env) []permission.Rule {
	ns := workloadNamespace(e)
	out := slices.Concat(
		check.ToApply(ns, check.ConfigMaps),
		check.To([]string{"get", "create", "patch", "delete"}, ns, check.Secrets), // that tokens are bound to
		check.Verbs("", "serviceaccounts/token", ns, "create"),
	)
	if holdsWatch(e) {
		out = append(out, check.ToApply(ns, check.ServiceAccounts, check.Roles, check.RoleBindings)...)
	}
	if forArgo(e) {
		out = append(out, check.ToApply(ns, check.Roles, check.RoleBindings)...)
		out = append(out, argoPermissions(ns)...) // nobody gives what he has not
	}
	if runsJob(e) {
		out = slices.Concat(
			out, check.ToApply(ns, check.Jobs), check.ToFollow(ns, check.Pods), check.Verbs("", "pods/log", ns, "get"),
		)
	}
	return out
}
