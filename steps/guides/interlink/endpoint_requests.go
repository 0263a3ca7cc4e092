package interlink

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// isAPI reports whether a response is from the API server: it returns errors as a Status, and
// its version and groups as JSON.
func isAPI(r probe.HTTPReport) bool {
	var v struct{ Kind, GitVersion string }
	return json.Unmarshal(r.Body, &v) == nil && (v.Kind != "" || v.GitVersion != "")
}

func endpointAnswers(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	var open []string
	for _, path := range []string{"/api", "/apis", "/version"} {
		r, err := t.get(ctx, e, path)
		if err != nil {
			if ctx.Err() != nil {
				return steps.Errored(err)
			}
			return steps.Failed("GET "+path+": "+failure.Explain(err), askBy(t, path))
		}
		switch {
		case r.Status == 200 && (isAPI(r) || len(r.Body) == 64<<10): // a long list of groups is truncated there
			open = append(open, path)
		case (r.Status == 401 || r.Status == 403) && isAPI(r):
		case r.Status == 404 && path == "/version":
			return steps.Warned(
				"GET /version is 404: kubectl and Helm ask for it. The published Ingress passes only /api and /apis on",
				"add the path /version (and /openapi) to the Ingress: carrick export "+e.LinkFile()+" DIR",
			)
		case r.Status == 404:
			return steps.Failed("GET "+path+" is 404: what answers there does not pass the API's paths on", askBy(t, path))
		case r.Status >= 500:
			return steps.Failed(
				fmt.Sprintf("GET %s is %d: what answers there does not reach the API server", path, r.Status),
				askBy(t, path)+"; "+clusterSays(e, t),
			)
		default:
			return steps.Failed(fmt.Sprintf("GET %s is %d, and not as an API server says it", path, r.Status), askBy(t, path))
		}
	}
	if len(open) == 0 {
		return steps.Passed("all three, and only to who has a token")
	}
	return steps.Passed("all three; %s to anybody", strings.Join(open, ", "))
}

func askBy(t endpointTarget, path string) string {
	return "curl --cacert ca.crt https://" + t.where + path
}

// clusterSays is the command that shows more on the cluster's side.
func clusterSays(e steps.Env, t endpointTarget) string {
	begin := e.Kubectl()
	if e.Side == steps.Remote {
		begin = e.PeerKubectl()
	}
	if t.mode == byProxy {
		return begin + " logs -n " + space(e) + " deployment/" + proxyName
	}
	return begin + " get pods -A"
}

func endpointAnonymous(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	r, err := t.get(ctx, e, "/api/v1/namespaces")
	if err != nil {
		return steps.Errored(err)
	}
	switch {
	case r.Status == 401:
		return steps.Passed("401: anonymous requests are refused altogether")
	case r.Status == 403 && isAPI(r):
		return steps.Passed("403: anonymous requests are known as such and may do nothing here")
	case r.Status == 200:
		return anybodyLists(ctx, e)
	}
	return steps.Warned(
		fmt.Sprintf("GET /api/v1/namespaces without a token is %d: neither 401 nor 403 of an API server", r.Status),
		askBy(t, "/api/v1/namespaces"),
	)
}

// listsNamespaces reports whether a role can list namespaces.
func listsNamespaces(r *rbacv1.ClusterRole) bool {
	has := func(list []string, v string) bool { return slices.Contains(list, v) || slices.Contains(list, "*") }
	return slices.ContainsFunc(r.Rules, func(p rbacv1.PolicyRule) bool {
		return has(p.APIGroups, "") && has(p.Resources, "namespaces") && has(p.Verbs, "list")
	})
}

func anybodyLists(ctx context.Context, e steps.Env) steps.Result {
	const found = "anybody may list namespaces without a token"
	look := "who gave rights to system:anonymous or system:unauthenticated? " + rbacSays(e) +
		" get clusterrolebindings,rolebindings -A -o wide | grep -E 'system:(anonymous|unauthenticated)'"
	if e.Side == steps.Remote {
		return steps.Failed(found, look)
	}
	all, err := check.List[rbacv1.ClusterRoleBinding](ctx, e.Cluster, check.ClusterRoleBindings, "", cluster.Selector{})
	if err != nil {
		return steps.Failed(found, look)
	}
	for _, b := range all {
		if b.Name == "system:public-info-viewer" || len(b.Subjects) == 0 ||
			slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
				return s.Name != "system:anonymous" && s.Name != "system:unauthenticated"
			}) {
			continue
		}
		if role, err := check.Get[rbacv1.ClusterRole](ctx, e.Cluster, check.ClusterRoles, "", b.RoleRef.Name); err != nil ||
			!listsNamespaces(role) {
			continue // such as a role that shows the issuer of tokens
		}
		return steps.Failed(
			fmt.Sprintf("%s: ClusterRoleBinding %s gives them ClusterRole %s", found, b.Name, clean.Text(b.RoleRef.Name)),
			e.Kubectl()+" delete clusterrolebinding "+steps.Quoted(b.Name)+"    # it is for nobody else",
		)
	}
	return steps.Failed(found, look)
}

func rbacSays(e steps.Env) string {
	if e.Side == steps.Remote {
		return e.PeerKubectl()
	}
	return e.Kubectl()
}

// otherPaths are paths of the API server that jobs must not reach.
var otherPaths = []string{"/metrics", "/healthz", "/logs/", "/debug/pprof/", "/"}

func endpointPaths(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	if t.mode == byServer {
		return steps.Skipped(
			"jobs dial the API server itself, which serves all its paths; only a token's rights are between them",
		)
	}
	var through []string
	for _, path := range otherPaths {
		r, err := t.get(ctx, e, path)
		if err != nil {
			return steps.Errored(err)
		}
		if isAPI(r) || (r.Status == 200 && !slices.Contains(through, path)) {
			through = append(through, fmt.Sprintf("%s (%d)", path, r.Status))
		}
	}
	if len(through) > 0 {
		fix := e.ApplyStep("proxy")
		if t.mode == byIngress {
			fix = "have the Ingress name its paths: carrick export " + e.LinkFile() + " DIR"
		}
		return steps.Failed("more than the API's paths is passed on: "+strings.Join(through, ", "), fix)
	}
	return steps.Passed("%s: none is passed on", strings.Join(otherPaths, " "))
}
