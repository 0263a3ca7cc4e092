package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// Request is a parsed request to the API server.
type Request struct {
	Verb      string // get, list, watch, create, update, patch, delete
	Resource  string // "secrets", "tenants.authentication.liqo.io", "namespaces/finalize"; or a non-resource path
	Namespace string
	Name      string
	DryRun    bool
}

// String formats the request for a log.
func (r Request) String() string {
	out := r.Verb + " " + r.Resource
	if r.Namespace+r.Name != "" {
		out += " " + strings.Trim(r.Namespace+"/"+r.Name, "/")
	}
	return out
}

var changing = []string{"create", "update", "patch", "delete"}

// Changes reports whether the request can change the cluster. Dry runs and reviews cannot.
func (r Request) Changes() bool {
	kind, _, _ := strings.Cut(r.Resource, ".")
	return slices.Contains(changing, r.Verb) && !r.DryRun && !strings.HasSuffix(kind, "reviews")
}

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

func parse(r *http.Request) Request {
	query := r.URL.Query()
	out := Request{Verb: verbs[r.Method], DryRun: query.Has("dryRun")}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = "."+parts[1], parts[3:]
	default:
		out.Resource = r.URL.Path
		if out.Verb == "" {
			out.Verb = "get"
		}
		return out
	}
	if parts[0] == "namespaces" && len(parts) > 2 && !slices.Contains([]string{"finalize", "status"}, parts[2]) {
		out.Namespace, parts = parts[1], parts[2:]
	}
	out.Resource = parts[0] + group
	if len(parts) > 1 {
		out.Name = parts[1]
	}
	if len(parts) > 2 {
		out.Resource += "/" + parts[2]
	}
	switch {
	case out.Verb != "":
	case query.Get("watch") == "true":
		out.Verb = "watch"
	case out.Name != "":
		out.Verb = "get"
	default:
		out.Verb = "list"
	}
	return out
}
