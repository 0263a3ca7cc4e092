package permission

import "strconv"

// Right is one thing that somebody may or may not do.
type Rule struct {
	Verb, Group, Resource, Subresource string

	Namespace string // "": cluster-scoped, or in all namespaces
	Name      string // "": any
	Path      string // a non-resource URL; then only Verb counts besides
}

// String reads like a sentence's end: "create secrets in renku-user-sessions",
// "list priorityclasses.scheduling.k8s.io", "get /metrics".
func (r Rule) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	what := r.Resource
	if r.Group != "" {
		what += "." + r.Group
	}
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	if r.Name != "" {
		what += " " + strconv.Quote(r.Name)
	}
	if r.Namespace != "" {
		what += " in " + r.Namespace
	}
	return r.Verb + " " + what
}

// Reading are the verbs that a tracked read needs.
var Reading = []string{"get", "list", "watch"}

// ToRead returns the rights that it takes to keep a read current that lacks one of them.
func ToRead(right Rule) []Rule {
	out := make([]Rule, len(Reading))
	for i, verb := range Reading {
		right.Verb, right.Name = verb, ""
		out[i] = right
	}
	return out
}
