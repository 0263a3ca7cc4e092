package vsphere

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	profileSource = "kubeflow/dashboard: components/profile-controller/manifests/kustomize/base/crd, " +
		"controllers/profile_controller.go"
	kubeflowPage = "https://github.com/kubeflow/manifests"
)

func profileChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "profiles-served", Title: "The guest serves Kubeflow's profiles", On: steps.Local,
			Needs:      []string{"signed-in"},
			Why:        "Without Kubeflow's Profile resource there are no users, and this guide has no purpose.",
			References: []string{profileSource}, Run: profilesServed,
		},
		{
			Name: "profiles-namespaces", Title: "Each profile has its namespace", On: steps.Local,
			Needs: []string{"profiles-served"}, FixedBy: "profile", Timeout: time.Minute,
			Why: "A profile whose namespace already existed for another owner fails permanently, and its user sees an " +
				"empty page.",
			References: []string{profileSource}, Run: profilesNamespaces,
		},
		{
			Name: "profile-labelled", Title: "Profile namespaces have the expected labels", On: steps.Local,
			Needs: []string{"profiles-namespaces"}, FixedBy: "profile", Timeout: 3 * time.Minute,
			Why: "Policies, webhooks and pod security select namespaces by label. The profile controller adds missing labels " +
				"and never overwrites existing labels.",
			References: []string{labelsSource}, Run: profileLabelled,
		},
		{
			Name: "profile-bound", Title: "Each profile has the PodSecurityPolicy binding", On: steps.Local,
			When: pspBranch, Needs: []string{"profiles-namespaces"}, FixedBy: "psp-bindings", Timeout: time.Minute,
			Why:        "A profile that is created after carrick apply gets the binding only from the extension.",
			References: []string{fixerSource}, Run: profileBound,
		},
	}
}

func profilesServed(ctx context.Context, e steps.Env) steps.Result {
	crd := profileKind.GroupResource().String()
	r := check.Served(
		ctx, e.Cluster, crd, profileKind.Version,
		"install Kubeflow, or at least its profiles (applications/profiles): "+kubeflowPage,
	)
	if r.Status != steps.Pass {
		return r
	}
	o, err := e.Cluster.Get(ctx, check.CRDs, "", crd)
	if err != nil {
		return steps.Errored(err)
	}
	if scope := textAt(o.Object, "spec", "scope"); scope != "Cluster" {
		return steps.Failed(
			fmt.Sprintf("CustomResourceDefinition %s has scope %s, so it is not Kubeflow's", crd, clean.Text(scope)),
			"install Kubeflow's own CustomResourceDefinition: "+kubeflowPage,
		)
	}
	return r
}

func profilesNamespaces(ctx context.Context, e steps.Env) steps.Result {
	var all []userProfile
	var controller controllerState
	err := check.Together(
		func() (err error) { all, err = profiles(ctx, e); return err },
		func() (err error) { controller, err = theController(ctx, e); return err },
	)
	if err != nil {
		return steps.Errored(err)
	}
	for _, p := range all {
		if p.ends {
			continue
		}
		if r := profileNamespace(ctx, e, controller, p); r.Status != steps.Pass {
			return r
		}
	}
	switch {
	case len(all) == 0 && controller.down != "":
		return controller.idle("no profile exists yet")
	case len(all) == 0:
		return steps.Skipped("no profile exists yet")
	case controller.down != "":
		return controller.idle("every existing profile has a namespace")
	case controller.risk != "":
		return steps.Warned(controller.risk, controller.fix).WithoutAction()
	}
	return steps.Passed("all %d profiles have a namespace that belongs to their owner", len(all))
}

func profileNamespace(ctx context.Context, e steps.Env, c controllerState, p userProfile) steps.Result {
	ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", p.name)
	switch {
	case apierrors.IsNotFound(err):
		return c.lacking(p.made, "Profile "+p.name+" has no namespace yet")
	case err != nil:
		return steps.Errored(err)
	case !p.owns(ns):
		return notTheirs(e, p, ns)
	}
	return steps.Passed("%s", p.name)
}

// notTheirs returns the verdict on a profile whose namespace belongs to another user or to no user. If the profile
// controller created the namespace for the profile, deleting the profile would delete the namespace, so the fix only
// shows both. Otherwise the fix deletes the profile. If the profile has a finalizer, the fix removes it first, because
// the controller ignores such a profile (Reconcile).
func notTheirs(e steps.Env, p userProfile, ns *corev1.Namespace) steps.Result {
	fix := fmt.Sprintf("%s describe namespace/%[2]s profile/%[2]s", e.Kubectl(), steps.Quoted(p.name))
	created := slices.ContainsFunc(ns.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == p.uid })
	if !created && p.held {
		fix += fmt.Sprintf(
			"\n%s patch profile %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'    # the profile controller would "+
				"never remove the finalizer",
			e.Kubectl(), steps.Quoted(p.name),
		)
	}
	if !created {
		fix += fmt.Sprintf("\n%s delete profile %s    # the namespace is not deleted", e.Kubectl(), steps.Quoted(p.name))
	}
	return steps.Failed(
		fmt.Sprintf("namespace %s belongs to %s, but Profile %s belongs to %s, so the profile controller ignores it",
			p.name, orNobody(ns.Annotations[ownerAnnotation]), p.name, orNobody(p.owner)), fix,
	)
}

func orNobody(user string) string {
	if user == "" {
		return "no owner"
	}
	return clean.Text(user)
}

// wantedLabels returns the labels that profile namespaces must have. These are the labels in the labels file and the
// label in mutation.selector.
func wantedLabels(ctx context.Context, e steps.Env) (map[string]string, error) {
	out := map[string]string{}
	f, err := labelsFile(ctx, e)
	if err != nil && !steps.IsAbsent(err) {
		return nil, err
	}
	maps.Copy(out, f.labels)
	if out[check.EnforceLabel] != level(e) { // checks labels-file and profile-levels report the difference
		delete(out, check.EnforceLabel)
	}
	if exchanges(e) {
		key, value := namespaceSelector(e)
		out[key] = value
	}
	return out, nil
}

func profileLabelled(ctx context.Context, e steps.Env) steps.Result {
	spaces, err := profileSpaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	want, err := wantedLabels(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	key, value := namespaceSelector(e)
	var lacking, other, unseen, fixes []string
	for _, ns := range spaces {
		if exchanges(e) && ns.Labels[key] != value {
			unseen = append(unseen, ns.Name)
		}
		for _, k := range slices.Sorted(maps.Keys(want)) {
			has, there := ns.Labels[k]
			switch {
			case want[k] == "" || has == want[k] || (exchanges(e) && k == key):
			case !there:
				lacking = append(lacking, fmt.Sprintf("%s (%s)", ns.Name, clean.Text(k)))
			default:
				other = append(other, fmt.Sprintf("%s (%s is %s)", ns.Name, clean.Text(k), clean.Text(has)))
				fixes = append(fixes, fmt.Sprintf("%s label --overwrite namespace %s %s",
					e.Kubectl(), ns.Name, steps.Quoted(k+"="+want[k])))
			}
		}
	}
	switch {
	case len(unseen) > 0:
		return steps.Failed(
			fmt.Sprintf(
				"%d of %d profile namespaces do not have label %s=%s, so claims in them keep their StorageClass: %s", len(unseen),
				len(spaces), key, value, check.Some(unseen),
			),
			fmt.Sprintf(
				"%s label --overwrite namespace %s %s    # and add the label to the labels file, for new profiles; or set "+
					"mutation.selector to a label that these namespaces have",
				e.Kubectl(), strings.Join(unseen, " "), steps.Quoted(key+"="+value),
			),
		)
	case len(lacking) > 0:
		controller, err := theController(ctx, e)
		if err != nil {
			return steps.Errored(err)
		}
		return onItsWay(
			ctx, e,
			steps.Failed(
				"profile namespaces do not have all labels of the labels file yet: "+check.Some(lacking), controller.fix,
			),
		)
	case len(other) > 0:
		fixes[0] += "    # the profile controller never overwrites a label"
		return steps.Warned(
			"labels differ from the labels file, and the profile controller does not overwrite them: "+check.Some(other),
			strings.Join(fixes, "\n"),
		)
	}
	return steps.Passed("all %d profile namespaces have the %d expected labels", len(spaces), len(want))
}

func profileBound(ctx context.Context, e steps.Env) steps.Result {
	spaces, err := profileSpaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	bindings, err := pspBindings(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	others := 0
	for _, ns := range spaces {
		if slices.ContainsFunc(
			bindings, func(b *rbacv1.RoleBinding) bool { return b.Namespace == ns.Name && bindsAll(b, ns.Name) },
		) {
			continue
		}
		without, err := pspAllowed(ctx, e, []string{ns.Name})
		if err != nil {
			return steps.Errored(err)
		}
		if len(without) == 0 { // another binding grants the permission, for example to all ServiceAccounts
			others++
			continue
		}
		found := fmt.Sprintf(
			"namespace %s has no RoleBinding %s%s to ClusterRole %s", ns.Name, bindingPrefix, ns.Name, pspRole,
		)
		if !e.Answers.Bool("security.follow") {
			return steps.Failed(found, "")
		}
		return steps.Waits(
			ns.CreationTimestamp.Time, "%s yet. The extension creates the binding", found,
		).Or(
			e.ApplyStep("security") + "    # to see why the extension has not created the binding: carrick check " +
				e.LinkFile() +
				" --only extension-ready",
		)
	}
	if others > 0 {
		return steps.Passed(
			"pods of all %d profiles can use PodSecurityPolicy %s. For %d of the profiles, a binding other than RoleBinding "+
				"%s… grants the permission",
			len(spaces), pspName,
			others, bindingPrefix,
		)
	}
	return steps.Passed("all %d profiles are bound to ClusterRole %s", len(spaces), pspRole)
}
