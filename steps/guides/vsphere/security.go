package vsphere

import (
	"context"
	"slices"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// pspRole is a ClusterRole in Tanzu guests before 1.25. It allows the use of the PodSecurityPolicy pspName, which
// rejects nothing. bindingPrefix is the name prefix of the published guide's RoleBindings.
const (
	pspRole       = "psp:vmware-system-privileged"
	pspName       = "vmware-system-privileged"
	bindingPrefix = "rb-all-sa_ns-"
)

func security() steps.Step {
	return steps.Step{
		Name: "security", Title: "Pod security",
		Map: steps.MapRow{Local: "pod security"},
		Why: "Before Kubernetes 1.25, a pod starts only if its ServiceAccount can use a PodSecurityPolicy. Later, each " +
			"namespace has a pod security level, and Tanzu guests enforce restricted in namespaces without a level. carrick " +
			"sets the level in the labels file of Kubeflow's profile controller, which applies the labels to profile " +
			"namespaces. A level applies to the whole namespace and, unlike a PodSecurityPolicy, sets no defaults.",
		Ask: []steps.Question{
			{
				Key: "security.level", Title: "Pod security level of profile namespaces", Kind: steps.Pick,
				Default: defaultSecurityLevel, Adopt: adoptSecurityLevel,
				Help: "baseline allows Kubeflow's notebooks and pipelines if istio-cni sets up the network of their sidecars. " +
					"Without istio-cni, each pod has an init container that requires privileged. restricted rejects Kubeflow's own " +
					"notebook images.",
				Of: []steps.Choice{
					{Value: check.Baseline, Title: "baseline: the level in Kubeflow's manifests, requires istio-cni"},
					{Value: check.Restricted, Title: "restricted: for notebook images built for it"},
					{Value: check.Privileged, Title: "privileged: for sidecars with istio-init, rejects nothing"},
				},
			},
			{
				Key: "security.leftovers", Title: "Deletion of leftover PodSecurityPolicy bindings", Kind: steps.YesNo,
				When: labelsBranch, Default: steps.Fixed(false, "default"),
				Help: "Yes: carrick deletes the RoleBindings " + bindingPrefix +
					"NAMESPACE of the published guide, which have no effect on a cluster without PodSecurityPolicies. An undo does " +
					"not recreate them.",
			},
			{
				Key: "security.follow", Title: "Automatic binding of new profiles", Kind: steps.YesNo, When: pspBranch,
				Default: steps.Fixed(true, "the published guide"), Adopt: adoptFollow,
				Help: "Yes: the extension watches profiles and creates the RoleBinding of each new profile. No: run carrick " +
					"apply after you create a profile.",
			},
		},
		Facts: []steps.Fact{
			{Name: "istio", Title: "how Istio sets up the network of pods", On: steps.Local, Learn: learnIstio},
			{
				Name: "labels-file", Title: "the ConfigMap with the labels of profile namespaces", On: steps.Local,
				Learn: learnLabelsFile,
			},
		},
		Actions: []steps.Action{
			{
				Name: "psp-bindings", Title: "Allow the pods of each profile to use the PodSecurityPolicy", On: steps.Local,
				When: pspBranch, Needs: []string{"psp-role"},
				Doer: action.Manifest{File: "psp-binding.yaml", Each: unboundProfiles},
			},
			{
				Name: "profile-labels", Title: "Set the pod security level in the labels file", On: steps.Local,
				When: hasLabelsFile, Needs: []string{"signed-in"},
				Doer: editsLabels(),
			},
			{
				Name: "leftovers", Title: "Delete PodSecurityPolicy bindings that have no effect", On: steps.Local,
				When:  deletesLeftovers,
				Needs: []string{"signed-in"},
				Doer:  leftoverBindings(),
			},
		},
		Checks: slices.Concat(pspChecks(), levelChecks()),
	}
}

// labelsBranch reports whether only pod security levels control the admission of pods.
func labelsBranch(e steps.Env) bool { return !pspBranch(e) }

func deletesLeftovers(e steps.Env) bool {
	return labelsBranch(e) && e.Answers.Bool("security.leftovers")
}

// hasLabelsFile reports whether the labels file exists. It also returns true if the file cannot be
// read. The plan then reports the reason.
func hasLabelsFile(e steps.Env) bool {
	_, err := e.Own.Text("labels-file")
	return !steps.IsAbsent(err)
}

// level returns the pod security level that the answers configure for profile namespaces.
func level(e steps.Env) string { return e.Answers.Text("security.level") }

func defaultSecurityLevel(e steps.Env) (any, string) {
	how, err := e.Own.Text("istio")
	switch {
	case err == nil && how == istioInit:
		return check.Privileged, "Istio without istio-cni"
	case err == nil && how == istioCNI:
		return check.Baseline, "the DaemonSet istio-cni"
	}
	return check.Baseline, "Kubeflow's manifests"
}

// adoptSecurityLevel adopts the pod security level in the labels file, or else the most frequent
// level of the profile namespaces.
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
	return most, "the profile namespaces", nil
}

// adoptFollow returns true if RoleBindings of the published guide's extension exist.
func adoptFollow(ctx context.Context, e steps.Env) (any, string, error) {
	all, err := pspBindings(ctx, e)
	if err != nil || len(all) == 0 {
		return nil, "", err
	}
	return true, "RoleBinding " + all[0].Namespace + "/" + all[0].Name, nil
}

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
		// RBAC lets users grant only permissions that they have
		out = append(out, permission.Rule{Verb: "use", Group: "policy", Resource: "podsecuritypolicies", Name: pspName})
	case deletesLeftovers(e):
		out = append(out, check.To([]string{"delete"}, "", check.RoleBindings)...)
	}
	return out
}
