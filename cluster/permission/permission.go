package permission

import "strconv"

// Rule is one permission.
type Rule struct {
	Verb, Group, Resource, Subresource string

	Namespace string // "": cluster-scoped, or all namespaces
	Name      string // "": all names
	Path      string // a non-resource URL; if set, only Path and Verb count
}

// String returns the rule in words that fit at the end of a sentence: "create secrets in renku-user-sessions", "list
// priorityclasses.scheduling.k8s.io", "get /metrics".
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

// Reading lists the verbs that a tracked read requires.
var Reading = []string{"get", "list", "watch"}

// ToRead returns all permissions that a tracked read requires, for the resource and namespace of the given permission.
func ToRead(right Rule) []Rule {
	out := make([]Rule, len(Reading))
	for i, verb := range Reading {
		right.Verb, right.Name = verb, ""
		out[i] = right
	}
	return out
}
