package stepstest

import (
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
	"carrick/steps"
)

// Writes counts the requests that change something: neither dry runs nor
// reviews do.
type Writes struct{ n atomic.Int64 }

// Count is how many there were.
func (w *Writes) Count() int { return int(w.n.Load()) }

// Options have a cluster's requests counted.
func (w *Writes) Options(o cluster.Options) cluster.Options {
	o.Around = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			read := r.Method == http.MethodGet || r.Method == http.MethodHead
			if !read && r.URL.Query().Get("dryRun") == "" && !strings.HasSuffix(r.URL.Path, "reviews") {
				w.n.Add(1)
			}
			return next.RoundTrip(r)
		})
	}
	return o
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Granted is a Role or ClusterRole that was printed for somebody who lacks
// rights, and the user group that it is bound to.
type Granted struct {
	Namespace string // "": a ClusterRole
	Name      string
	Rules     []rbacv1.PolicyRule
	Group     string
}

// Grants reads what was printed for somebody who lacks rights.
func Grants(tb testing.TB, text, group string) []Granted {
	tb.Helper()
	var out []Granted
	for _, doc := range strings.Split(text, "---\n") {
		var role rbacv1.ClusterRole // both kinds keep their rules in one place
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

// Bind binds each to its group.
func Bind(tb testing.TB, box *clustertest.Sandbox, side steps.Side, roles []Granted) {
	tb.Helper()
	var docs []*unstructured.Unstructured
	for _, g := range roles {
		docs = append(docs, binding(g.Namespace, g.Name, g.Group, rbacv1.Subject{Kind: "Group", Name: g.Group, APIGroup: rbacv1.GroupName}))
	}
	put(tb, box, side, docs)
}

// Without is a right that one user lacks of all that was granted.
type Without struct {
	User   string
	Groups []string // which grant all the rest
	Role   Granted
	Rule   rbacv1.PolicyRule // one verb on one kind
}

// Right is that right.
func (w Without) Right() cluster.Right {
	resource, sub, _ := strings.Cut(w.Rule.Resources[0], "/")
	r := cluster.Right{Verb: w.Rule.Verbs[0], Group: w.Rule.APIGroups[0], Resource: resource, Subresource: sub, Namespace: w.Role.Namespace}
	if len(w.Rule.ResourceNames) > 0 {
		r.Name = w.Rule.ResourceNames[0]
	}
	return r
}

// Each makes a user for each right of what was granted, who has all but that.
func Each(tb testing.TB, box *clustertest.Sandbox, side steps.Side, roles []Granted) []Without {
	tb.Helper()
	var out []Without
	var docs []*unstructured.Unstructured
	for i, role := range roles {
		for r, rule := range role.Rules {
			for v, verb := range rule.Verbs {
				user := fmt.Sprintf("%s-%d-%d-%d", role.Group, i, r, v)
				w := Without{User: user, Role: role, Rule: rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames}}
				for j, other := range roles {
					if j != i {
						w.Groups = append(w.Groups, other.Group)
					}
				}
				rules := slices.Clone(role.Rules)
				rules[r].Verbs = slices.Delete(slices.Clone(rule.Verbs), v, v+1)
				if len(rules[r].Verbs) == 0 {
					rules = slices.Delete(rules, r, r+1)
				}
				docs = append(docs, roleOf(role.Namespace, user, rules), binding(role.Namespace, user, user, rbacv1.Subject{Kind: "User", Name: user, APIGroup: rbacv1.GroupName}))
				out = append(out, w)
			}
		}
	}
	put(tb, box, side, docs)
	return out
}

// Less binds all that was granted but some rights to groups of one user, and
// returns the groups, in the order of what was granted.
func Less(tb testing.TB, box *clustertest.Sandbox, side steps.Side, roles []Granted, without []Without, user string) []string {
	tb.Helper()
	var docs []*unstructured.Unstructured
	var groups []string
	for i, left := range Remaining(roles, without, nil) {
		name := fmt.Sprintf("%s-%d", user, i)
		groups = append(groups, name)
		docs = append(docs, roleOf(left.Namespace, name, left.Rules), binding(left.Namespace, name, name, rbacv1.Subject{Kind: "Group", Name: name, APIGroup: rbacv1.GroupName}))
	}
	put(tb, box, side, docs)
	return groups
}

// Remaining is what was granted without some rights, bound to these groups.
func Remaining(roles []Granted, without []Without, groups []string) []Granted {
	var out []Granted
	for i, role := range roles {
		left := Granted{Namespace: role.Namespace, Name: role.Name}
		if groups != nil {
			left.Group = groups[i]
		}
		for _, rule := range role.Rules {
			rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
				return slices.ContainsFunc(without, func(w Without) bool {
					return w.Role.Namespace == role.Namespace && w.Rule.Verbs[0] == verb && slices.Equal(w.Rule.APIGroups, rule.APIGroups) &&
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
	return object(&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules})
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
		panic(err) // a struct of our own
	}
	return &unstructured.Unstructured{Object: content}
}

const together = 8 // requests

// put writes objects as an admin.
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
