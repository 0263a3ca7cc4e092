// Paths of Renku's API, and who can call them (crc/blueprints.py, users/blueprints.py get_self, base_api/misc.py,
// base_api/auth.py). A path with a malformed ID returns 404. This is a guess: Sanic's router was not read.

package renkuapi

import (
	"context"
	"net/http"
	"regexp"
	"strings"
)

const apiPath = "/api/data"

// handler returns the status and the body of a response, or an error.
type handler func(*http.Request) (int, any, error)

// callers selects who can call a route.
type callers int

const (
	anybody callers = iota
	signedIn
	admins
)

type route struct {
	method, path string
	who          callers
	do           handler
}

var poolNumber = regexp.MustCompile(`^[0-9]{1,9}$`)

func routes(r *registry, p *pools) []route {
	return []route{
		{"GET", "/version", anybody, r.getVersion},
		{"GET", "/spec.json", anybody, r.getSpec},
		{"GET", "/user", signedIn, p.getUser},
		{"GET", "/clusters", admins, r.listClusters},
		{"POST", "/clusters", admins, r.postCluster},
		{"GET", "/clusters/{id}", admins, r.getCluster},
		{"PUT", "/clusters/{id}", admins, r.putCluster},
		{"PATCH", "/clusters/{id}", admins, r.patchCluster},
		{"DELETE", "/clusters/{id}", admins, r.deleteCluster},
		{"GET", "/resource_pools", anybody, p.list},
		{"POST", "/resource_pools", admins, p.post},
		{"GET", "/resource_pools/{id}", anybody, p.get},
		{"PUT", "/resource_pools/{id}", admins, p.put},
		{"PATCH", "/resource_pools/{id}", admins, p.patch},
		{"DELETE", "/resource_pools/{id}", admins, p.remove},
		{"GET", "/resource_pools/{id}/quota", anybody, p.getQuota},
		{"PUT", "/resource_pools/{id}/quota", admins, p.putQuota},
		{"PATCH", "/resource_pools/{id}/quota", admins, p.patchQuota},
		{"GET", "/resource_pools/{id}/users", admins, p.getUsers},
		{"POST", "/resource_pools/{id}/users", admins, p.postUsers},
		{"PUT", "/resource_pools/{id}/users", admins, p.putUsers},
		{"GET", "/resource_pools/{id}/members", admins, p.getMembers},
		{"POST", "/resource_pools/{id}/members", admins, p.postMembers},
		{"PUT", "/resource_pools/{id}/members", admins, p.putMembers},
	}
}

// registerAPI adds the routes to mux. who returns the caller of a request. before runs before each permitted request.
func registerAPI(mux *http.ServeMux, all []route, who func(*http.Request) *claims, before func(context.Context)) {
	methods := map[string]map[string]route{}
	for _, r := range all {
		if methods[r.path] == nil {
			methods[r.path] = map[string]route{}
		}
		methods[r.path][r.method] = r
	}
	for path, of := range methods {
		mux.HandleFunc(apiPath+path, func(w http.ResponseWriter, r *http.Request) {
			switch route, ok := of[r.Method]; {
			case !rightForm(path, r.PathValue("id")):
				notFound(w, r)
			case !ok:
				answerError(w, refusal(http.StatusMethodNotAllowed, "Method %s not allowed for URL %s", r.Method, r.URL.Path))
			default:
				route.serve(w, r, who(r), before)
			}
		})
	}
	mux.HandleFunc(apiPath+"/", notFound)
}

func rightForm(path, id string) bool {
	switch {
	case !strings.Contains(path, "{id}"):
		return true
	case strings.HasPrefix(path, "/clusters/"):
		return ulid.MatchString(id)
	}
	return poolNumber.MatchString(id)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	answerError(w, missing("Requested URL %s not found", r.URL.Path))
}

func (r route) serve(w http.ResponseWriter, req *http.Request, caller *claims, before func(context.Context)) {
	switch {
	case r.who == signedIn && caller == nil:
		answerError(w, refusal(http.StatusUnauthorized, "You have to be authenticated to perform this operation."))
		return
	case r.who == admins && caller == nil:
		answerError(w, unauthorized())
		return
	case r.who == admins && !caller.admin():
		answerError(w, forbidden())
		return
	}
	before(req.Context())
	status, body, err := r.do(req)
	if err != nil {
		answerError(w, err)
		return
	}
	answer(w, status, body)
}

func (s *pools) getUser(r *http.Request) (int, any, error) {
	c := s.who(r)
	return http.StatusOK, map[string]any{
		"id": c.Subject, "username": c.Username, "email": c.Email,
		"first_name": c.First, "last_name": c.Last, "is_admin": c.admin(),
	}, nil
}
