package stepstest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/permission"
	"carrick/steps"
)

// Writes counts the requests that change something. Dry runs and reviews don't count.
type Writes struct{ n atomic.Int64 }

// Count returns the number of requests that change something.
func (w *Writes) Count() int { return int(w.n.Load()) }

// Options returns cluster options that count the requests.
func (w *Writes) Options(o cluster.Options) cluster.Options {
	o.Around = func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(r *http.Request) (*http.Response, error) {
			read := r.Method == http.MethodGet || r.Method == http.MethodHead
			if !read && r.URL.Query().Get("dryRun") == "" && !strings.HasSuffix(r.URL.Path, "reviews") {
				w.n.Add(1)
			}
			return next.RoundTrip(r)
		})
	}
	return o
}

// RoundTripper is a function that implements http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Granted is a Role or ClusterRole that carrick printed for a user with missing permissions. It includes the group to
// which the role is bound.
type Granted struct {
	Namespace string // "" for a ClusterRole
	Name      string
	Rules     []rbacv1.PolicyRule
	Group     string
}

// Grants parses the roles that carrick printed for a user with missing permissions.
func Grants(tb testing.TB, text, group string) []Granted {
	tb.Helper()
	var out []Granted
	for _, doc := range strings.Split(text, "---\n") {
		var role rbacv1.ClusterRole // both kinds have their rules in the same field
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			tb.Fatalf("%v:\n%s", err, doc)
		}
		if role.Kind == "Role" || role.Kind == "ClusterRole" {
			out = append(out, Granted{role.Namespace, role.Name, role.Rules, strings.TrimSuffix(group+"-"+role.Namespace, "-")})
		}
	}
	if len(out) == 0 {
		tb.Fatalf("no role was printed:\n%s", text)
	}
	return out
}

// Bind binds each role to its group.
func Bind(tb testing.TB, box *clustertest.Sandbox, side steps.Side, roles []Granted) {
	tb.Helper()
	var docs []*unstructured.Unstructured
	for _, g := range roles {
		docs = append(
			docs,
			binding(g.Namespace, g.Name, g.Group, rbacv1.Subject{Kind: "Group", Name: g.Group, APIGroup: rbacv1.GroupName}),
		)
	}
	put(tb, box, side, docs)
}

// Lacked is one permission of a role. It has one verb on one resource.
type Lacked struct {
	Role Granted
	Rule rbacv1.PolicyRule
}

// Right returns the permission as a rule.
func (l Lacked) Right() permission.Rule {
	resource, sub, _ := strings.Cut(l.Rule.Resources[0], "/")
	r := permission.Rule{
		Verb: l.Rule.Verbs[0], Group: l.Rule.APIGroups[0], Resource: resource, Subresource: sub, Namespace: l.Role.Namespace,
	}
	if len(l.Rule.ResourceNames) > 0 {
		r.Name = l.Rule.ResourceNames[0]
	}
	return r
}

// Rights returns all permissions of the roles, by role and verb.
func Rights(roles []Granted) []Lacked {
	var out []Lacked
	for _, role := range roles {
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				out = append(
					out,
					Lacked{
						role,
						rbacv1.PolicyRule{
							Verbs: []string{verb}, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
						},
					},
				)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Lacked) int {
		return cmp.Or(cmp.Compare(a.Role.Group, b.Role.Group), cmp.Compare(a.Rule.Verbs[0], b.Rule.Verbs[0]))
	})
	return out
}

// Without is a user who has all permissions except for some permissions of one role.
type Without struct {
	User   string
	Groups []string // the groups that have the other roles
	Lacks  []Lacked
	Has    Granted // the rest of the role
}

// UsersWithout creates users for whom some of the given permissions are missing. All permissions that a user lacks have
// the same verb and role. many is their maximum number.
func UsersWithout(
	tb testing.TB, box *clustertest.Sandbox, side steps.Side, roles []Granted, rights []Lacked, many int,
) []Without {
	tb.Helper()
	var out []Without
	for _, l := range rights {
		if last := len(out) - 1; last >= 0 && len(out[last].Lacks) < many && out[last].Lacks[0].Role.Group == l.Role.Group &&
			out[last].Lacks[0].Rule.Verbs[0] == l.Rule.Verbs[0] {
			out[last].Lacks = append(out[last].Lacks, l)
			continue
		}
		out = append(out, Without{User: fmt.Sprintf("%s-%d-of-%d", l.Role.Group, len(out), many), Lacks: []Lacked{l}})
	}
	var docs []*unstructured.Unstructured
	for i := range out {
		w := &out[i]
		for _, role := range roles {
			if role.Group == w.Lacks[0].Role.Group {
				w.Has = Remaining([]Granted{role}, w.Lacks, []string{w.User})[0]
			} else {
				w.Groups = append(w.Groups, role.Group)
			}
		}
		namespace := w.Has.Namespace
		docs = append(
			docs, roleOf(namespace, w.User, w.Has.Rules),
			binding(namespace, w.User, w.User, rbacv1.Subject{Kind: "User", Name: w.User, APIGroup: rbacv1.GroupName}),
		)
	}
	put(tb, box, side, docs)
	return out
}

// Less binds the roles to groups of one user. The permissions in without are removed from the roles. Less returns the
// groups in the order of the roles.
func Less(
	tb testing.TB, box *clustertest.Sandbox, side steps.Side, roles []Granted, without []Lacked, user string,
) []string {
	tb.Helper()
	var docs []*unstructured.Unstructured
	var groups []string
	for i, left := range Remaining(roles, without, nil) {
		name := fmt.Sprintf("%s-%d", user, i)
		groups = append(groups, name)
		docs = append(
			docs, roleOf(left.Namespace, name, left.Rules),
			binding(left.Namespace, name, name, rbacv1.Subject{Kind: "Group", Name: name, APIGroup: rbacv1.GroupName}),
		)
	}
	put(tb, box, side, docs)
	return groups
}

// Remaining returns the roles after the permissions in without are removed. Each role is bound to its group in groups.
// If groups is nil, the roles are not bound to a group.
func Remaining(roles []Granted, without []Lacked, groups []string) []Granted {
	var out []Granted
	for i, role := range roles {
		left := Granted{Namespace: role.Namespace, Name: role.Name}
		if groups != nil {
			left.Group = groups[i]
		}
		for _, rule := range role.Rules {
			rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
				return slices.ContainsFunc(without, func(w Lacked) bool {
					return w.Role.Namespace == role.Namespace && w.Rule.Verbs[0] == verb &&
						slices.Equal(w.Rule.APIGroups, rule.APIGroups) &&
						slices.Equal(w.Rule.Resources, rule.Resources) && slices.Equal(w.Rule.ResourceNames, rule.ResourceNames)
				})
			})
			if len(rule.Verbs) > 0 {
				left.Rules = append(left.Rules, rule)
			}
		}
		out = append(out, left)
	}
	return out
}

func roleOf(namespace, name string, rules []rbacv1.PolicyRule) *unstructured.Unstructured {
	kind := "ClusterRole"
	if namespace != "" {
		kind = "Role"
	}
	return object(&rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules,
	})
}

func binding(namespace, role, name string, to rbacv1.Subject) *unstructured.Unstructured {
	kind := "ClusterRole"
	if namespace != "" {
		kind = "Role"
	}
	return object(&rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind + "Binding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Subjects:   []rbacv1.Subject{to}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
	})
}

func object(v any) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		panic(err) // our own struct always marshals
	}
	return &unstructured.Unstructured{Object: content}
}

const together = 8 // maximum number of concurrent requests

func put(tb testing.TB, box *clustertest.Sandbox, side steps.Side, docs []*unstructured.Unstructured) {
	tb.Helper()
	admin := box.Open(tb, string(side), cluster.Options{})
	var all errgroup.Group
	all.SetLimit(together)
	for _, o := range docs {
		all.Go(func() error {
			_, err := admin.Apply(tb.Context(), o, cluster.ApplyOptions{Manager: "proof", Force: true})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		tb.Fatal(err)
	}
}
