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
			Name: "psp-or-labels", Title: "Pods are admitted now and after an upgrade to 1.25",
			On: steps.Local, Needs: []string{"signed-in"}, FixedBy: "profile-labels",
			Why: "Kubernetes 1.25 removes PodSecurityPolicies. Pod security levels apply from 1.23 on. With both configured, " +
				"the upgrade changes nothing.",
			References: []string{pspSource, levelsSource}, Run: pspOrLabels,
		},
		{
			Name: "psp-role", Title: "A ClusterRole allows use of the PodSecurityPolicy", On: steps.Local,
			When: pspBranch, Needs: []string{"signed-in"},
			Why: "The API server rejects a binding to a missing role, and the published guide's extension stops " +
				"watching after that error.",
			References: []string{fixerSource, pspSource}, Run: pspRoleThere,
		},
		{
			Name: "psp-bound", Title: "Each profile's pods can use the PodSecurityPolicy", On: steps.Local,
			When: pspBranch, Needs: []string{"psp-role"}, FixedBy: "psp-bindings", Timeout: time.Minute,
			Why: "Without the binding, all pods of a namespace are rejected. Notebooks never start, and only an event " +
				"contains the reason.",
			References: []string{fixerSource, pspSource}, Run: pspBound,
		},
		{
			Name: "psp-leftovers", Title: "No binding refers to removed PodSecurityPolicies", On: steps.Local,
			When: labelsBranch, Needs: []string{"signed-in"}, FixedBy: "leftovers",
			Why:        "Such bindings look like protection, but have no effect.",
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
		return steps.Passed("the cluster serves no PodSecurityPolicies, so only pod security levels apply")
	}
	f, err := labelsFile(ctx, e)
	if steps.IsAbsent(err) {
		return steps.Warned(
			"the cluster serves PodSecurityPolicies. After an upgrade to 1.25, pod security levels apply, but no labels file "+
				"sets a level for profiles: "+
				err.Error(),
			"install Kubeflow's profile controller, or label each namespace",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if f.labels[check.EnforceLabel] == "" {
		return steps.Warned(
			fmt.Sprintf(
				"the cluster serves PodSecurityPolicies. After an upgrade to 1.25, pod security levels apply, but ConfigMap %s "+
					"sets no level for profiles", f,
			),
			"",
		)
	}
	return steps.Passed(
		"the cluster serves PodSecurityPolicies. After an upgrade to 1.25, the pod security level %s applies to profiles",
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
		return check.Missing(err, "ClusterRole "+pspRole+", which Tanzu guests include,", fix)
	}
	for _, r := range role.Rules {
		if slices.Contains(r.Verbs, "use") && slices.Contains(r.Resources, "podsecuritypolicies") &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, pspName)) {
			return steps.Passed("ClusterRole %s", pspRole)
		}
	}
	return steps.Failed(
		fmt.Sprintf("ClusterRole %s does not allow use of PodSecurityPolicy %s", pspRole, pspName),
		fix+" --dry-run=client -o yaml | "+e.Kubectl()+" replace -f -",
	)
}

// accounts lists the ServiceAccounts of a profile's pods. Notebooks and pipelines run as
// default-editor (kubeflow/dashboard:
// components/profile-controller/controllers/profile_controller.go).
var accounts = []string{"default", "default-editor"}

// pspAllowed returns the namespaces in which at least one of the ServiceAccounts in accounts is not
// allowed to use the PodSecurityPolicy.
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
		return steps.Skipped("no profile exists yet")
	}
	without, err := pspAllowed(ctx, e, spaceNames(spaces))
	if err != nil {
		return steps.Errored(err)
	}
	if len(without) == 0 {
		return steps.Passed("ServiceAccounts of all %d profiles can use PodSecurityPolicy %s", len(spaces), pspName)
	}
	found := fmt.Sprintf(
		"ServiceAccounts of %d of %d profiles cannot use PodSecurityPolicy %s: %s", len(without), len(spaces), pspName,
		check.Some(without),
	)
	if e.Answers.Bool("security.follow") {
		i := slices.IndexFunc(spaces, func(ns *corev1.Namespace) bool { return ns.Name == without[0] })
		return steps.Waits(
			spaces[i].CreationTimestamp.Time, "%s. The extension creates the bindings of new profiles", found,
		).Or(e.ApplyStep("security"))
	}
	return steps.Failed(found, "")
}

// pspBindings returns the RoleBindings with the published guide's name prefix that refer to a
// PodSecurityPolicy role, regardless of who created them.
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

// unboundProfiles returns the profile namespaces for which carrick creates or has created the binding. carrick does not
// manage correct bindings of another tool.
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

// bindsAll reports whether b grants pspRole to all ServiceAccounts of namespace and has the name that the published
// guide uses.
func bindsAll(b *rbacv1.RoleBinding, namespace string) bool {
	return b.Name == bindingPrefix+namespace && b.RoleRef.Name == pspRole &&
		slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.GroupKind && s.Name == "system:serviceaccounts:"+namespace
		})
}

// eachOf returns the names of the namespaces that satisfy the predicate is. carrick renders a manifest once for each
// name.
func eachOf(spaces []*corev1.Namespace, is func(*corev1.Namespace) bool) []any {
	var out []any
	for _, ns := range spaces {
		if is(ns) {
			out = append(out, ns.Name)
		}
	}
	return out
}

// stillFollows returns a finding if the extension still creates bindings although the cluster no longer serves
// PodSecurityPolicies. Otherwise found is "".
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
		"the cluster serves no PodSecurityPolicies, but Deployment %s/%s still binds profiles to ClusterRole %s and "+
			"recreates deleted bindings",
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
		return steps.Passed("no RoleBinding %s… refers to a PodSecurityPolicy role", bindingPrefix)
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
		"the cluster serves no PodSecurityPolicies, but these RoleBindings allow their use: "+check.Some(names),
		fix,
	)
}
