package interlink

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/certs"
	"carrick/steps/check"
)

// What it takes to follow an object, to edit one that is there, and to make one.
var (
	following = []string{"get", "list", "watch"}
	editing   = []string{"get", "list", "watch", "patch"}
	applying  = []string{"get", "list", "watch", "create", "patch"}
)

func mayMakeCheck() steps.Check {
	return steps.Check{
		Name: "may-make", Title: "you may make what this guide makes", On: steps.Local, Needs: []string{"signed-in"}, Rights: true,
		Why: "a right that is missing half-way leaves an endpoint of which no job is told, or jobs that are told of one that is not there",
		See: []string{page}, Run: mayMake,
	}
}

func mayMake(ctx context.Context, e steps.Env) steps.Result {
	rights := slices.Concat(endpointRights(e), kubeletRights(e), trialRights(e))
	e.Cluster.WillRead(signingRequests, "") // once the virtual node runs
	if mode(e) == byProxy {                 // looked at once it is there
		e.Cluster.WillRead(check.EndpointSlices, space(e))
		e.Cluster.WillRead(check.Pods, space(e))
	}
	var once []cluster.Right
	for _, r := range rights {
		if !slices.Contains(once, r) {
			once = append(once, r)
		}
	}
	r := check.MayI(ctx, e.Cluster, once, "")
	if r.Status != steps.Fail {
		return r
	}
	var fresh []string
	for _, ns := range []string{space(e), workloadNamespace(e), vkNamespace(e)} {
		if _, err := e.Cluster.Get(ctx, check.Namespaces, "", ns); apierrors.IsNotFound(err) {
			fresh = append(fresh, ns)
		}
	}
	return r.Or("ask an admin of the " + e.SideName() + " to apply this and bind it to you:\n" + steps.Grant("carrick-"+e.Link, once, fresh...))
}

func to(do []string, in string, kinds ...schema.GroupVersionResource) []cluster.Right {
	var out []cluster.Right
	for _, k := range kinds {
		out = append(out, check.Verbs(k.Group, k.Resource, in, do...)...)
	}
	return out
}

// endpointRights are for what opens a way to the API.
func endpointRights(e steps.Env) []cluster.Right {
	if mode(e) != byProxy {
		return nil // nothing is made: it is there, or files are written for who makes it
	}
	out := slices.Concat(to(applying, "", check.Namespaces), to(applying, space(e), check.ConfigMaps, check.Deployments, check.Services))
	if len(e.Answers.List("exposure.sources")) > 0 {
		out = append(out, to(applying, space(e), check.NetworkPolicies)...)
	}
	switch {
	case signedBy(byCertManager)(e):
		return slices.Concat(out, to(applying, space(e), certs.Issuers, certs.Certificates), to(following, space(e), secretKind))
	case signedBy(bySelf)(e):
		return append(out, to(applying, space(e), secretKind)...)
	}
	return append(out, to(following, space(e), secretKind)...)
}

// kubeletRights are for what the virtual kubelet is told, and to see it start with
// that.
func kubeletRights(e steps.Env) []cluster.Right {
	return slices.Concat(
		to(editing, vkNamespace(e), check.ConfigMaps, check.Deployments),
		to(following, vkNamespace(e), check.Pods),
		check.Verbs("", "pods/log", vkNamespace(e), "get"),
	)
}

// trialRights are for what is tried, and for what jobs are given.
func trialRights(e steps.Env) []cluster.Right {
	ns := workloadNamespace(e)
	out := slices.Concat(
		to(applying, ns, check.ConfigMaps),
		to([]string{"get", "create", "patch", "delete"}, ns, secretKind), // that tokens are bound to
		check.Verbs("", "serviceaccounts/token", ns, "create"),
	)
	if holdsWatch(e) {
		out = append(out, to(applying, ns, check.ServiceAccounts, check.Roles, check.RoleBindings)...)
	}
	if forArgo(e) {
		out = slices.Concat(out, to(applying, ns, check.Roles, check.RoleBindings), argoRights(ns)) // nobody gives what he has not
	}
	if runsJob(e) {
		out = slices.Concat(out, to(applying, ns, check.Jobs), to(following, ns, check.Pods), check.Verbs("", "pods/log", ns, "get"))
	}
	return out
}
