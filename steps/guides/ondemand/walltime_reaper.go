package ondemand

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// reaperAt returns the Deployments of the given reaper. A matching label is not sufficient, because any user with a
// namespace can create a Deployment with that label. Therefore the Deployment must also be in the reaper's namespace,
// or its ServiceAccount must be the subject of a ClusterRoleBinding, as in both charts (OSC/job-pod-reaper,
// OSC/k8-namespace-reaper: charts).
func reaperAt(ctx context.Context, e steps.Env, name string) ([]*appsv1.Deployment, error) {
	var found []*appsv1.Deployment
	var bindings []*rbacv1.ClusterRoleBinding
	err := check.Together(
		func() (err error) {
			labels := cluster.Selector{Labels: "app.kubernetes.io/name=" + name}
			found, err = check.List[appsv1.Deployment](ctx, e.Cluster, check.Deployments, "", labels)
			return err
		},
		func() (err error) {
			bindings, err = check.List[rbacv1.ClusterRoleBinding](
				ctx, e.Cluster, check.ClusterRoleBindings, "", cluster.Selector{},
			)
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(d *appsv1.Deployment) bool {
		account := rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Namespace: d.Namespace, Name: d.Spec.Template.Spec.ServiceAccountName,
		}
		return d.Namespace != name && !slices.ContainsFunc(bindings, func(b *rbacv1.ClusterRoleBinding) bool {
			return slices.Contains(b.Subjects, account)
		})
	}), nil
}

func reaperThere(ctx context.Context, e steps.Env) steps.Result {
	all, err := reaperAt(ctx, e, reaperName)
	if err != nil {
		return steps.Errored(err)
	}
	var elsewhere []string
	for _, d := range all {
		if d.Namespace == reaperName && d.Spec.Template.Spec.ServiceAccountName == reaperName {
			if _, err := check.Get[rbacv1.ClusterRole](ctx, e.Cluster, check.ClusterRoles, "", reaperName); err != nil {
				return check.Missing(err, "ClusterRole "+reaperName+" (bound by the hook)", "")
			}
			return check.Available(ctx, e, d.Namespace, d.Name, e.Kubectl()+" -n "+reaperName+" describe pods")
		}
		elsewhere = append(
			elsewhere,
			fmt.Sprintf("Deployment %s/%s with ServiceAccount %s", d.Namespace, d.Name, d.Spec.Template.Spec.ServiceAccountName),
		)
	}
	if len(elsewhere) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"job-pod-reaper runs as %s, but the hook grants the permissions to ServiceAccount %s/%s",
				strings.Join(elsewhere, ", "),
				reaperName, reaperName,
			),
			e.Helm()+" uninstall -n "+steps.Quoted(all[0].Namespace)+" "+
				steps.Quoted(all[0].Labels["app.kubernetes.io/instance"])+
				"    # then "+e.ApplyStep("walltime"),
		)
	}
	return steps.Undone(fmt.Sprintf("Deployment %s does not exist in namespace %s", reaperName, reaperName))
}

// valuesNested verifies that the given release sets the values in config under the key config, not at the top level. in
// is the release's namespace.
func valuesNested(ctx context.Context, e steps.Env, in, name string, config map[string]any) steps.Result {
	r, err := chart.Find(ctx, e.Cluster, in, name)
	if errors.Is(err, chart.ErrNoRelease) {
		return steps.Skipped("Helm has no release %s in namespace %s", name, in)
	}
	if err != nil {
		return steps.Errored(err)
	}
	var top []string
	for _, k := range slices.Sorted(maps.Keys(config)) {
		if _, ok := r.Given(k); ok {
			top = append(top, k)
		}
	}
	fix := helmUpgrade(e, in, name, r.Chart, r.Version, config)
	_, nested := r.Given("config")
	switch {
	case len(top) > 0:
		return steps.Failed(
			fmt.Sprintf(
				"release %s has %s at the top level of its values, but the chart reads only values under config:", name,
				strings.Join(top, ", "),
			),
			fix,
		)
	case !nested:
		return steps.Failed(fmt.Sprintf("release %s has no values under config:, so the chart's defaults apply", name), fix)
	}
	return steps.Passed("release %s, chart %s", name, r.Version)
}

func reaperValues(ctx context.Context, e steps.Env) steps.Result {
	r, err := chart.Find(ctx, e.Cluster, reaperName, reaperName)
	if err == nil && checkReaperVersion(r.Version) != nil {
		found := fmt.Sprintf(
			"release %s has chart %s, which ignores objectLabels; %s is the first version that supports objectLabels",
			reaperName, r.Version, reaperSince,
		)
		return steps.Failed(found, helmUpgrade(e, reaperName, reaperName, r.Chart, reaperVersion, reaperConfig()))
	}
	return valuesNested(ctx, e, reaperName, reaperName, reaperConfig())
}

// helmUpgrade returns the helm command that sets config under the key config and resets all other values to the chart's
// defaults.
func helmUpgrade(e steps.Env, in, name, chartName, version string, config map[string]any) string {
	var sets []string
	for _, k := range slices.Sorted(maps.Keys(config)) {
		value := strings.ReplaceAll(fmt.Sprint(config[k]), ",", `\,`)
		sets = append(sets, "--set "+steps.Quoted(fmt.Sprintf("config.%s=%s", k, value)))
	}
	return fmt.Sprintf("%s -n %s upgrade %s %s --version %s --reset-values %s", e.Helm(), in, name,
		chartName+"/"+chartName, version, strings.Join(sets, " ")) + "    # add the chart's repository first: helm repo add"
}

// argOf returns the value of flag in the command lines of the Deployment's containers.
func argOf(d *appsv1.Deployment, flag string) (value string, ok bool) {
	for _, c := range d.Spec.Template.Spec.Containers {
		all := slices.Concat(c.Command, c.Args)
		for i, a := range all {
			a = strings.TrimLeft(a, "-")
			if v, is := strings.CutPrefix(a, flag+"="); is {
				value, ok = v, true
			} else if a == flag && i+1 < len(all) {
				value, ok = all[i+1], true
			}
		}
	}
	return value, ok
}

func reaperNarrow(ctx context.Context, e steps.Env) steps.Result {
	all, err := reaperAt(ctx, e, reaperName)
	if err != nil {
		return steps.Errored(err)
	}
	if len(all) == 0 {
		return steps.Skipped("%s does not run on this cluster", reaperName)
	}
	var wrong []string
	for _, d := range all {
		at := d.Namespace + "/" + d.Name
		labels, _ := argOf(d, "namespace-labels")
		objects, _ := argOf(d, "object-labels")
		switch spaces, all := reapedSpaces(d); {
		case labels == "" && all:
			wrong = append(wrong, at+" reaps all namespaces (--reap-namespaces="+spaces+")")
		case labels == "":
			wrong = append(wrong, at+" has no --namespace-labels="+userLabel+"="+userValue)
		case labels != userLabel+"="+userValue:
			wrong = append(
				wrong, fmt.Sprintf("%s has --namespace-labels=%s, not %s=%s", at, clean.Text(labels), userLabel, userValue),
			)
		}
		if objects != managedLabel+"="+userValue {
			wrong = append(wrong, at+" has no --object-labels="+managedLabel+"="+userValue+
				", so it also deletes users' objects that have the label job but do not belong to an app")
		}
	}
	_, err = check.Get[rbacv1.ClusterRoleBinding](ctx, e.Cluster, check.ClusterRoleBindings, "", reaperName)
	switch {
	case err == nil:
		wrong = append(
			wrong,
			"ClusterRoleBinding "+reaperName+
				" allows job-pod-reaper to delete pods, Services, ConfigMaps and Secrets in every namespace",
		)
	case !apierrors.IsNotFound(err):
		return steps.Errored(err)
	}
	if len(wrong) > 0 {
		fix := e.ApplyStep("walltime") + "    # with walltime.enabled: true"
		if values := reaperValues(ctx, e); values.Status == steps.Fail {
			fix = values.Fix
		}
		return steps.Failed(strings.Join(wrong, "; "), fix)
	}
	return steps.Passed("reaps only namespaces labelled %s=%s", userLabel, userValue)
}

// reapedSpaces returns the value of --reap-namespaces. all reports whether the value selects all namespaces
// (OSC/job-pod-reaper: main.go, getNamespaces). The flag has no effect if --namespace-labels is set.
func reapedSpaces(d *appsv1.Deployment) (value string, all bool) {
	value, ok := argOf(d, "reap-namespaces")
	if !ok {
		value = "all"
	}
	return value, strings.EqualFold(value, "all") || slices.Contains(strings.Split(value, ","), "")
}

// userNamespaces returns the namespaces with the label that upstream's hook sets.
func userNamespaces(ctx context.Context, e steps.Env) ([]*corev1.Namespace, error) {
	return check.List[corev1.Namespace](
		ctx, e.Cluster, check.Namespaces, "", cluster.Selector{Labels: userLabel + "=" + userValue},
	)
}

func reaperBound(ctx context.Context, e steps.Env) steps.Result {
	spaces, err := userNamespaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	all, err := check.List[rbacv1.RoleBinding](ctx, e.Cluster, check.RoleBindings, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	bound := map[string]bool{}
	for _, b := range all {
		is := slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == reaperName && s.Name == reaperName
		})
		if is && b.RoleRef.Kind == "ClusterRole" && b.RoleRef.Name == reaperName {
			bound[b.Namespace] = true
		}
	}
	var without []string
	for _, ns := range spaces {
		if !bound[ns.Name] {
			without = append(without, ns.Name)
		}
	}
	switch {
	case len(spaces) == 0:
		return steps.Skipped("no namespace has the label %s=%s yet: no user has logged in", userLabel, userValue)
	case len(without) > 0:
		return steps.Failed(
			fmt.Sprintf(
				"%d of %d users' namespaces have no RoleBinding for job-pod-reaper: %s. The reaper deletes nothing in "+
					"any namespace", len(without), len(spaces),
				few(without),
			),
			bindReaper(e, without),
		)
	}
	return steps.Passed("all %d users' namespaces have the RoleBinding", len(spaces))
}
