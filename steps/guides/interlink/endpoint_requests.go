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

// isAPI reports whether the API server sent r. The API server returns errors as a Status object, and its version and
// API groups as JSON objects.
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
		case r.Status == 200 && (isAPI(r) || len(r.Body) == 64<<10): // the probe truncates a long list of groups to 64 KiB
			open = append(open, path)
		case (r.Status == 401 || r.Status == 403) && isAPI(r):
		case r.Status == 404 && path == "/version":
			return steps.Warned(
				"GET /version returns 404, because the published Ingress forwards only /api and /apis; kubectl and Helm "+
					"request /version",
				"add the paths /version and /openapi to the Ingress: carrick export "+e.LinkFile()+" DIR",
			)
		case r.Status == 404:
			return steps.Failed("GET "+path+" returns 404: the server does not forward the API's paths", askBy(t, path))
		case r.Status >= 500:
			return steps.Failed(
				fmt.Sprintf("GET %s returns %d: the server cannot reach the API server", path, r.Status),
				askBy(t, path)+"; "+clusterSays(e, t),
			)
		default:
			return steps.Failed(
				fmt.Sprintf("GET %s returns %d, but the response does not come from an API server", path, r.Status), askBy(t, path),
			)
		}
	}
	if len(open) == 0 {
		return steps.Passed("all three paths answer, but only with a token")
	}
	return steps.Passed("all three paths answer, and %s even without a token", strings.Join(open, ", "))
}

func askBy(t endpointTarget, path string) string {
	return "curl --cacert ca.crt https://" + t.where + path
}

// clusterSays returns the command that shows the proxy's log in mode proxy, and the command that lists all pods in
// other modes.
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
		return steps.Passed("GET /api/v1/namespaces returns 401: all anonymous requests are rejected")
	case r.Status == 403 && isAPI(r):
		return steps.Passed("GET /api/v1/namespaces returns 403: anonymous requests have no permission to list namespaces")
	case r.Status == 200:
		return anybodyLists(ctx, e)
	}
	return steps.Warned(
		fmt.Sprintf("GET /api/v1/namespaces without a token returns %d, not 401 or 403 from an API server", r.Status),
		askBy(t, "/api/v1/namespaces"),
	)
}

// listsNamespaces reports whether r allows listing namespaces.
func listsNamespaces(r *rbacv1.ClusterRole) bool {
	has := func(list []string, v string) bool { return slices.Contains(list, v) || slices.Contains(list, "*") }
	return slices.ContainsFunc(r.Rules, func(p rbacv1.PolicyRule) bool {
		return has(p.APIGroups, "") && has(p.Resources, "namespaces") && has(p.Verbs, "list")
	})
}

func anybodyLists(ctx context.Context, e steps.Env) steps.Result {
	const found = "everyone can list namespaces without a token"
	look := "find what grants permissions to system:anonymous or system:unauthenticated: " + rbacSays(e) +
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
			continue // for example the ClusterRole system:service-account-issuer-discovery
		}
		return steps.Failed(
			fmt.Sprintf("%s: ClusterRoleBinding %s grants ClusterRole %s", found, b.Name, clean.Text(b.RoleRef.Name)),
			e.Kubectl()+" delete clusterrolebinding "+steps.Quoted(b.Name)+"    # the binding has no other subjects",
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

// otherPaths lists paths of the API server that jobs must not reach.
var otherPaths = []string{"/metrics", "/healthz", "/logs/", "/debug/pprof/", "/"}

func endpointPaths(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	if t.mode == byServer {
		return steps.Skipped(
			"jobs connect to the API server itself, which serves all its paths; only the token's permissions limit them",
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
			fix = "list only the API's paths in the Ingress: carrick export " + e.LinkFile() + " DIR"
		}
		return steps.Failed("the endpoint forwards paths other than the API's four: "+strings.Join(through, ", "), fix)
	}
	return steps.Passed("the endpoint forwards none of the paths %s", strings.Join(otherPaths, " "))
}
