package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

const (
	fixerSource = page + " (additional/resources.yaml, src/main/java/de/keeyzar/profilewatcher)"
	pspSource   = "https://kubernetes.io/docs/concepts/security/pod-security-policy/"
)

func pspChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "psp-or-labels", Title: "pods are let in by what the cluster serves, and will be after an upgrade",
			On: steps.Local, Needs: []string{"signed-in"}, FixedBy: "profile-labels",
			Why: "PodSecurityPolicies are gone with Kubernetes 1.25, whatever roles and bindings of them are left; " +
				"levels of namespaces count from 1.23 on. With both nothing changes on the day of the upgrade",
			References: []string{pspSource, levelsSource}, Run: pspOrLabels,
		},
		{
			Name: "psp-role", Title: "there is a role by which profiles' pods may use the PodSecurityPolicy", On: steps.Local,
			When: pspBranch, Needs: []string{"signed-in"},
			Why: "a binding to a role that is not there is refused, and the published guide's extension ends its " +
				"thread on that",
			References: []string{fixerSource, pspSource}, Run: pspRoleThere,
		},
		{
			Name: "psp-bound", Title: "the accounts of every profile may use the PodSecurityPolicy", On: steps.Local,
			When: pspBranch, Needs: []string{"psp-role"}, FixedBy: "psp-bindings", Timeout: time.Minute,
			Why: "pods of a namespace without the binding are refused one and all: notebooks never start, and only an " +
				"event says why",
			References: []string{fixerSource, pspSource}, Run: pspBound,
		},
		{
			Name: "psp-leftovers", Title: "no binding speaks of PodSecurityPolicies that are gone", On: steps.Local,
			When: labelsBranch, Needs: []string{"signed-in"}, FixedBy: "leftovers",
			Why:        "they look like protection and do nothing",
			References: []string{fixerSource, pspSource}, Run: pspLeftovers,
		},
	}
}

func pspOrLabels(ctx context.Context, e steps.Env) steps.Result {
	branch, err := e.Own.Text("branch")
	if err != nil {
		return steps.Errored(err)
	}
	if branch == branchLabels {
		return steps.Passed("it serves no PodSecurityPolicies: levels of namespaces are what counts")
	}
	f, err := labelsFile(ctx, e)
	if steps.IsAbsent(err) {
		return steps.Warned(
			"it serves PodSecurityPolicies; after an upgrade to 1.25 levels count, and there is no file that would give "+
				"profiles one: "+err.Error(),
			"install Kubeflow's profile controller, or label each namespace",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if f.labels[check.EnforceLabel] == "" {
		return steps.Warned(
			fmt.Sprintf(
				"it serves PodSecurityPolicies; after an upgrade to 1.25 levels count, and ConfigMap %s gives profiles none", f,
			),
			"",
		)
	}
	return steps.Passed(
		"it serves PodSecurityPolicies; for after the upgrade to 1.25, profiles are given the level %s",
		clean.Text(f.labels[check.EnforceLabel]),
	)
}

func pspRoleThere(ctx context.Context, e steps.Env) steps.Result {
	role, err := check.Get[rbacv1.ClusterRole](ctx, e.Cluster, check.ClusterRoles, "", pspRole)
	fix := fmt.Sprintf(
		"%s create clusterrole %s --verb=use --resource=podsecuritypolicies.policy --resource-name=%s", e.Kubectl(), pspRole,
		pspName,
	)
	if err != nil {
		return check.Missing(err, "ClusterRole "+pspRole+", which Tanzu guests come with", fix)
	}
	for _, r := range role.Rules {
		if slices.Contains(r.Verbs, "use") && slices.Contains(r.Resources, "podsecuritypolicies") &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, pspName)) {
			return steps.Passed("ClusterRole %s", pspRole)
		}
	}
	return steps.Failed(
		fmt.Sprintf("ClusterRole %s does not let anybody use PodSecurityPolicy %s", pspRole, pspName),
		fix+" --dry-run=client -o yaml | "+e.Kubectl()+" replace -f -",
	)
}

// accounts are those as which a profile's pods run: notebooks and pipelines as
// default-editor (kubeflow/dashboard: components/profile-controller/controllers/profile_controller.go).
var accounts = []string{"default", "default-editor"}

// pspAllowed asks for each namespace whether its pods may use the policy.
func pspAllowed(ctx context.Context, e steps.Env, namespaces []string) (without []string, err error) {
	may := make([][]bool, len(namespaces))
	var asks []func() error
	for i, ns := range namespaces {
		may[i] = make([]bool, len(accounts))
		for j, name := range accounts {
			asks = append(asks, func() error {
				user := check.Account{Namespace: ns, Name: name}.User()
				said, err := e.Cluster.CanAs(ctx, user, true, permission.Rule{
					Verb: "use", Group: "policy", Resource: "podsecuritypolicies", Name: pspName, Namespace: ns,
				})
				if err != nil {
					return err
				}
				may[i][j] = said[0].Allowed
				return said[0].Err
			})
		}
	}
	if err := check.Together(asks...); err != nil {
		return nil, err
	}
	for i, ns := range namespaces {
		if slices.Contains(may[i], false) {
			without = append(without, ns)
		}
	}
	return without, nil
}

func pspBound(ctx context.Context, e steps.Env) steps.Result {
	spaces, err := profileSpaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(spaces) == 0 {
		return steps.Skipped("there is no profile yet")
	}
	without, err := pspAllowed(ctx, e, spaceNames(spaces))
	if err != nil {
		return steps.Errored(err)
	}
	if len(without) == 0 {
		return steps.Passed("those of all %d profiles, PodSecurityPolicy %s", len(spaces), pspName)
	}
	found := fmt.Sprintf(
		"the accounts of %d of %d profiles may not use PodSecurityPolicy %s: %s", len(without), len(spaces), pspName,
		check.Some(without),
	)
	if e.Answers.Bool("security.follow") {
		i := slices.IndexFunc(spaces, func(ns *corev1.Namespace) bool { return ns.Name == without[0] })
		return steps.Waits(
			spaces[i].CreationTimestamp.Time, "%s; the extension binds new ones", found,
		).Or(e.ApplyStep("security"))
	}
	return steps.Failed(found, "")
}

// pspBindings are the RoleBindings to roles of PodSecurityPolicies that are called
// as the published guide calls them, whoever made them.
func pspBindings(ctx context.Context, e steps.Env) ([]*rbacv1.RoleBinding, error) {
	all, err := check.List[rbacv1.RoleBinding](ctx, e.Cluster, check.RoleBindings, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(b *rbacv1.RoleBinding) bool {
		return !strings.HasPrefix(b.Name, bindingPrefix) || b.RoleRef.Kind != "ClusterRole" ||
			!strings.HasPrefix(b.RoleRef.Name, "psp:")
	}), nil
}

// unboundProfiles are the namespaces of profiles for which carrick makes the
// binding, or has: those that somebody else made as it should be stay theirs.
func unboundProfiles(ctx context.Context, e steps.Env) ([]any, error) {
	spaces, err := profileSpaces(ctx, e)
	if steps.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bindings, err := pspBindings(ctx, e)
	if err != nil {
		return nil, err
	}
	return eachOf(spaces, func(ns *corev1.Namespace) bool {
		return !slices.ContainsFunc(bindings, func(b *rbacv1.RoleBinding) bool {
			return b.Namespace == ns.Name && bindsAll(b, ns.Name) && inventory.CreatedBy(b.Annotations) != e.Link
		})
	}), nil
}

// bindsAll tells whether a binding is as the published guide makes it.
func bindsAll(b *rbacv1.RoleBinding, namespace string) bool {
	return b.Name == bindingPrefix+namespace && b.RoleRef.Name == pspRole &&
		slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.GroupKind && s.Name == "system:serviceaccounts:"+namespace
		})
}

// eachOf are the names of namespaces, for a manifest that is rendered once for each.
func eachOf(spaces []*corev1.Namespace, is func(*corev1.Namespace) bool) []any {
	var out []any
	for _, ns := range spaces {
		if is(ns) {
			out = append(out, ns.Name)
		}
	}
	return out
}

// stillFollows says that the extension goes on making bindings on a cluster that serves
// no PodSecurityPolicies any more; "": it does not.
func stillFollows(ctx context.Context, e steps.Env) (found, fix string, err error) {
	s, err := theExtension(ctx, e)
	if steps.IsAbsent(err) {
		return "", "", nil
	}
	if err != nil || s.follows == "" {
		return "", "", err
	}
	fix = "carrick undo " + e.LinkFile() + " --step extension"
	if runsExtension(e) {
		fix = e.ApplyStep("extension")
	}
	return fmt.Sprintf(
		"the cluster serves no PodSecurityPolicies, and Deployment %s/%s goes on binding profiles to ClusterRole %s: what "+
			"is deleted it makes again",
		s.Namespace, s.Name, clean.Text(s.follows),
	), fix, nil
}

func pspLeftovers(ctx context.Context, e steps.Env) steps.Result {
	found, fix, err := stillFollows(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if found != "" {
		return steps.Warned(found, fix)
	}
	all, err := pspBindings(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(all) == 0 {
		return steps.Passed("there is no RoleBinding %s… to a role of PodSecurityPolicies", bindingPrefix)
	}
	var names, fixes []string
	for _, b := range all {
		names = append(names, b.Namespace+"/"+b.Name)
		fixes = append(fixes, e.Kubectl()+" -n "+b.Namespace+" delete rolebinding "+steps.Quoted(b.Name))
	}
	fix = ""
	if !deletesLeftovers(e) {
		fix = strings.Join(fixes, "\n") + "    # or " + answer(e, "security.leftovers", "yes")
	}
	return steps.Warned(
		"the cluster serves no PodSecurityPolicies, and these RoleBindings let somebody use them: "+check.Some(names),
		fix,
	)
}
