package vsphere

import (
	"context"
	"slices"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// pspRole is the ClusterRole by which Tanzu guests of before 1.25 let pods do
// everything, and bindingPrefix how the published guide calls its bindings.
const (
	pspRole       = "psp:vmware-system-privileged"
	pspName       = "vmware-system-privileged"
	bindingPrefix = "rb-all-sa_ns-"
)

func security() steps.Step {
	return steps.Step{
		Name: "security", Title: "Pod security",
		Why: "Tanzu guests before 1.25 let no pod in whose account may not use a PodSecurityPolicy; later ones hold each " +
			"namespace to a level, and one without a level to the narrowest. The published guide watches namespaces and binds " +
			"that policy. The level belongs where the owner of profiles' namespaces keeps it: in the labels file of " +
			"Kubeflow's profile controller, which carrick edits. A PodSecurityPolicy was of an account and could set " +
			"defaults; a level is of the whole namespace and only refuses.",
		Ask: []steps.Question{
			{
				Key: "security.level", Title: "Pod security level of profiles' namespaces", Kind: steps.Pick,
				Default: defaultSecurityLevel, Adopt: adoptSecurityLevel,
				Help: "baseline lets Kubeflow's notebooks and pipelines run, where istio-cni sets up the network of their " +
					"sidecars. Without it each pod has an init container that takes privileged. restricted refuses Kubeflow's own " +
					"images of notebooks.",
				Of: []steps.Choice{
					{Value: check.Baseline, Title: "baseline: Kubeflow's own choice, with istio-cni"},
					{Value: check.Restricted, Title: "restricted: notebooks of images that are made for it"},
					{Value: check.Privileged, Title: "privileged: sidecars with istio-init; nothing is refused"},
				},
			},
			{
				Key: "security.leftovers", Title: "Delete bindings to roles of PodSecurityPolicies", Kind: steps.YesNo,
				When: labelsBranch, Default: steps.Fixed(false, "they are somebody else's"),
				Help: "RoleBindings " + bindingPrefix +
					"NAMESPACE that the published guide made: on a cluster without PodSecurityPolicies they do nothing. They are " +
					"not made again by an undo.",
			},
			{
				Key: "security.follow", Title: "Bind profiles to come, too", Kind: steps.YesNo, When: pspBranch,
				Default: steps.Fixed(true, "the published guide"), Adopt: adoptFollow,
				Help: "The extension watches profiles and makes the binding for each new one; without it carrick apply has to be " +
					"run after each.",
			},
		},
		Facts: []steps.Fact{
			{Name: "istio", Title: "how Istio sets up the network of pods", On: steps.Local, Learn: learnIstio},
			{
				Name: "labels-file", Title: "the ConfigMap with the labels of profiles' namespaces", On: steps.Local,
				Learn: learnLabelsFile,
			},
		},
		Actions: []steps.Action{
			{
				Name: "psp-bindings", Title: "Let the pods of each profile use the PodSecurityPolicy", On: steps.Local,
				When: pspBranch, Needs: []string{"psp-role"},
				Doer: action.Manifest{File: "psp-binding.yaml", Each: unboundProfiles},
			},
			{
				Name: "profile-labels", Title: "Have profiles' namespaces labelled with the level", On: steps.Local,
				When: hasLabelsFile, Needs: []string{"signed-in"},
				Doer: editsLabels(),
			},
			{
				Name: "leftovers", Title: "Delete bindings that do nothing any more", On: steps.Local, When: deletesLeftovers,
				Needs: []string{"signed-in"},
				Doer:  leftoverBindings(),
			},
		},
		Checks: slices.Concat(pspChecks(), levelChecks()),
	}
}

// labelsBranch tells whether pods are let in by levels alone.
func labelsBranch(e steps.Env) bool { return !pspBranch(e) }

func deletesLeftovers(e steps.Env) bool {
	return labelsBranch(e) && e.Answers.Bool("security.leftovers")
}

// hasLabelsFile holds also where it can't be read whether there is one: the plan
// then says why.
func hasLabelsFile(e steps.Env) bool {
	_, err := e.Own.Text("labels-file")
	return !steps.IsAbsent(err)
}

// level is the one that profiles' namespaces are to have.
func level(e steps.Env) string { return e.Answers.Text("security.level") }

func defaultSecurityLevel(e steps.Env) (any, string) {
	how, err := e.Own.Text("istio")
	switch {
	case err == nil && how == istioInit:
		return check.Privileged, "pods get sidecars, and there is no istio-cni"
	case err == nil && how == istioCNI:
		return check.Baseline, "istio-cni is there"
	}
	return check.Baseline, "Kubeflow's manifests"
}

// adoptSecurityLevel is what the labels file says, else what most namespaces of profiles
// have.
func adoptSecurityLevel(ctx context.Context, e steps.Env) (any, string, error) {
	f, err := labelsFile(ctx, e)
	if err == nil && slices.Contains(check.Levels, f.labels[check.EnforceLabel]) {
		return f.labels[check.EnforceLabel], "ConfigMap " + f.String(), nil
	}
	if err != nil && !steps.IsAbsent(err) {
		return nil, "", err
	}
	all, err := profileSpaces(ctx, e)
	if err != nil && !steps.IsAbsent(err) {
		return nil, "", err
	}
	count, most := map[string]int{}, ""
	for _, ns := range all {
		has := ns.Labels[check.EnforceLabel]
		if count[has]++; slices.Contains(check.Levels, has) && count[has] > count[most] {
			most = has
		}
	}
	if most == "" {
		return nil, "", nil
	}
	return most, "the namespaces of profiles", nil
}

// adoptFollow tells whether somebody makes such bindings: the published guide's
// extension does.
func adoptFollow(ctx context.Context, e steps.Env) (any, string, error) {
	all, err := pspBindings(ctx, e)
	if err != nil || len(all) == 0 {
		return nil, "", err
	}
	return true, "RoleBinding " + all[0].Namespace + "/" + all[0].Name, nil
}

// securityPermissions are what it takes to do this step.
func securityPermissions(e steps.Env) []permission.Rule {
	out := slices.Concat(
		check.ToFollow(
			"", profileKind, check.Namespaces, check.DaemonSets, check.Deployments, check.RoleBindings, check.Events,
		),
		check.ToEdit(kubeflowSpace, check.ConfigMaps),
		check.To([]string{"create", "patch"}, "", check.Pods, check.Namespaces), // dry runs
	)
	switch {
	case pspBranch(e):
		out = slices.Concat(out, check.ToApply("", check.RoleBindings), check.ToFollow("", check.ClusterRoles),
			check.Verbs("authorization.k8s.io", "subjectaccessreviews", "", "create"))
		// nobody gives what he has not
		out = append(out, permission.Rule{Verb: "use", Group: "policy", Resource: "podsecuritypolicies", Name: pspName})
	case deletesLeftovers(e):
		out = append(out, check.To([]string{"delete"}, "", check.RoleBindings)...)
	}
	return out
}
