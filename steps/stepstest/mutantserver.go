package stepstest

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
)

type asked struct {
	mu       sync.Mutex
	requests []askedRequest
}

type askedRequest struct {
	method, path string
	byAdmin      bool
}

func (a *asked) note(r *http.Request) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, askedRequest{r.Method, r.URL.Path, byAdmin(r)})
}

func (a *asked) take() []askedRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.requests
	a.requests = nil
	return out
}

func byAdmin(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+admin }

// with returns a copy of the server with other objects and more admission rules. The copy answers only while it is the
// mutant of s.
func (s *server) with(objects []*unstructured.Unstructured, more ...admission) *server {
	return &server{
		Server: s.Server, side: s.side, objects: objects, denied: s.denied, version: s.version, skew: s.skew, pair: s.pair,
		signs: s.signs, logs: s.logs, refuses: s.refuses, minted: s.minted, pages: s.pages,
		admission: slices.Concat(more, s.admission), refusals: more, also: s.also, level: s.level, written: s.written,
		merger: s.merger, asked: s.asked,
	}
}

type reads struct {
	objects map[string]bool // keys of GETs, and of LISTs with a trailing "*"
	special map[steps.Side]bool
	pages   map[string]bool
}

func newReads() *reads {
	return &reads{objects: map[string]bool{}, special: map[steps.Side]bool{}, pages: map[string]bool{}}
}

// add records all objects that a request might read.
func (r *reads) add(side steps.Side, q askedRequest) {
	if !q.byAdmin || q.method != http.MethodGet || q.path == "/api" || q.path == "/apis" {
		r.special[side] = true
	}
	if strings.Contains(q.path, "/proxy/") || q.path == "/metrics" {
		r.pages[q.path] = true
	}
	a, single := parsePath(q.path)
	name := a.Name
	if !single {
		name = "*"
	}
	r.objects[readKey(side, a.Group, a.Resource, a.Namespace, name)] = true
}

func readKey(side steps.Side, group, resource, namespace, name string) string {
	return strings.Join([]string{string(side), group, resource, namespace, name}, "|")
}

// judging lists kinds that the fake itself reads to answer reviews, dry runs, tokens and discovery.
var judging = map[string]bool{
	"Role": true, "ClusterRole": true, "RoleBinding": true, "ClusterRoleBinding": true, "Namespace": true, "Pod": true,
	"Service": true, "Secret": true, "CustomResourceDefinition": true, "PodSecurityPolicy": true,
}

// of reports whether a check might have read an object. If the check read it by name, got is true.
func (r *reads) of(side steps.Side, o *unstructured.Unstructured) (read, got bool) {
	group, resource := resourceOf(o)
	got = r.objects[readKey(side, group, resource, o.GetNamespace(), o.GetName())]
	listed := r.objects[readKey(side, group, resource, o.GetNamespace(), "*")]
	everywhere := r.objects[readKey(side, group, resource, "", "*")]
	return got || listed || everywhere || r.special[side] && judging[o.GetKind()], got
}
