package ondemand

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

func walltimeChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "reaper-there", Title: "job-pod-reaper runs where the hook expects it", On: steps.Remote, When: usesWalltime,
			FixedBy: "reaper", Needs: []string{"signed-in"},
			Why: "the hook binds ClusterRole job-pod-reaper to ServiceAccount job-pod-reaper in namespace " +
				"job-pod-reaper, whatever the release is called. Where that ClusterRole is missing the binding is refused, and " +
				"with it the login's hook ends",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/yaml/job-pod-reaper.yaml", reaperSource},
			Run:        reaperThere,
		},
		{
			Name: "reaper-values", Title: "its values stand under config:", On: steps.Remote, Needs: []string{"signed-in"},
			Why: "Helm takes values at the top without a word, and the chart does not read them: its defaults hold, " +
				"which reap every namespace. The published page has them at the top",
			References: []string{page, reaperSource},
			Run:        reaperValues,
		},
		{
			Name: "reaper-narrow", Title: "it deletes in users' namespaces alone", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "by default it reaps all namespaces, and deletes Services, ConfigMaps and Secrets with a label job " +
				"whose pod is gone: other people's, too",
			References: []string{reaperSource},
			Run:        reaperNarrow,
		},
		{
			Name: "may-grant-reaper", Title: "the ServiceAccount holds what it grants to job-pod-reaper", On: steps.Remote,
			When: usesWalltime, Needs: []string{"reaper-there", "role-bound"},
			Why:        "the hook binds that ClusterRole too, and Kubernetes lets nobody grant what they do not hold",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/yaml/job-pod-reaper.yaml", reaperSource},
			Run:        func(ctx context.Context, e steps.Env) steps.Result { return holdsAll(ctx, e, reaperName) },
		},
		{
			Name: "reaper-counts-no-errors", Title: "its last run met no error", On: steps.Remote,
			From: "the API server's proxy", When: usesWalltime, Needs: []string{"reaper-there"},
			Why:        "an error in one namespace ends a run: its own metric is the only place that says so",
			References: []string{reaperSource},
			Run:        reaperErrors,
		},
		{
			Name: "apps-set-walltime", Title: "apps set a walltime", On: steps.Remote, When: usesWalltime,
			Needs: []string{"signed-in"},
			Why: "without wall_time in an app's submit.yml.erb its pods have no annotation, and the reaper leaves " +
				"them for ever",
			References: []string{"OSC/ood_core: lib/ood_core/job/adapters/kubernetes/templates/pod.yml.erb"},
			Run:        appsSetWalltime,
		},
	}
}

// reaperBoundCheck is asked once the hook is there, which makes the bindings.
func reaperBoundCheck() steps.Check {
	return steps.Check{
		Name: "reaper-bound", Title: "every user's namespace lets it delete", On: steps.Remote, When: usesWalltime,
		Needs: []string{"reaper-there"},
		Why: "one namespace with the label and without the binding makes it give up on all of them: nothing is " +
			"reaped anywhere",
		References: []string{reaperSource},
		Run:        reaperBound,
	}
}

// reaperAt finds the Deployments of one of the two reapers, wherever they are: those in its own namespace, and those
// whose ServiceAccount a ClusterRoleBinding names, as both charts' does (OSC/job-pod-reaper,
// OSC/k8-namespace-reaper: charts). Whoever has a namespace can label a Deployment there like one, which reaps nothing.
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
				return check.Missing(err, "ClusterRole "+reaperName+", which the hook binds", "")
			}
			return check.Available(ctx, e.Cluster, d.Namespace, d.Name, e.Kubectl()+" -n "+reaperName+" describe pods")
		}
		elsewhere = append(
			elsewhere, fmt.Sprintf("%s/%s as %s", d.Namespace, d.Name, d.Spec.Template.Spec.ServiceAccountName),
		)
	}
	if len(elsewhere) > 0 {
		return steps.Failed(
			fmt.Sprintf("it runs as %s, and the hook lets %s/%s delete", strings.Join(elsewhere, ", "), reaperName, reaperName),
			e.Helm()+" uninstall -n "+steps.Quoted(all[0].Namespace)+" "+
				steps.Quoted(all[0].Labels["app.kubernetes.io/instance"])+
				"    # then "+e.ApplyStep("walltime"),
		)
	}
	return steps.Undone(fmt.Sprintf("there is no Deployment of %s in namespace %s", reaperName, reaperName))
}

// valuesNested asserts of a chart's release that its values stand under config:.
func valuesNested(ctx context.Context, e steps.Env, in, name string, config map[string]any) steps.Result {
	r, err := chart.Find(ctx, e.Cluster, in, name)
	if errors.Is(err, chart.ErrNoRelease) {
		return steps.Skipped("Helm keeps no release %s in namespace %s", name, in)
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
				"release %s has %s at the top of its values, where the chart ignores them: they belong under config:", name,
				strings.Join(top, ", "),
			),
			fix,
		)
	case !nested:
		return steps.Failed(fmt.Sprintf("release %s has no values under config:, so the chart's defaults hold", name), fix)
	}
	return steps.Passed("release %s, chart %s", name, r.Version)
}

// reaperValues asserts that the chart reads the values that carrick sets.
func reaperValues(ctx context.Context, e steps.Env) steps.Result {
	r, err := chart.Find(ctx, e.Cluster, reaperName, reaperName)
	if err == nil && checkReaperVersion(r.Version) != nil {
		found := fmt.Sprintf("release %s has chart %s, which ignores objectLabels: %s is the first that reads it",
			reaperName, r.Version, reaperSince)
		return steps.Failed(found, helmUpgrade(e, reaperName, reaperName, r.Chart, reaperVersion, reaperConfig()))
	}
	return valuesNested(ctx, e, reaperName, reaperName, reaperConfig())
}

// helmUpgrade is a command that has a release take these values under config: and no others.
func helmUpgrade(e steps.Env, in, name, chartName, version string, config map[string]any) string {
	var sets []string
	for _, k := range slices.Sorted(maps.Keys(config)) {
		value := strings.ReplaceAll(fmt.Sprint(config[k]), ",", `\,`)
		sets = append(sets, "--set "+steps.Quoted(fmt.Sprintf("config.%s=%s", k, value)))
	}
	return fmt.Sprintf("%s -n %s upgrade %s %s --version %s --reset-values %s", e.Helm(), in, name,
		chartName+"/"+chartName, version, strings.Join(sets, " ")) + "    # with the chart's repository: helm repo add"
}

// argOf is the value of a flag of a Deployment's containers.
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
				": it also deletes objects of users that no app created, by their label job")
		}
	}
	_, err = check.Get[rbacv1.ClusterRoleBinding](ctx, e.Cluster, check.ClusterRoleBindings, "", reaperName)
	switch {
	case err == nil:
		wrong = append(
			wrong, "ClusterRoleBinding "+reaperName+" lets it delete pods, Services, ConfigMaps and Secrets in every namespace",
		)
	case !apierrors.IsNotFound(err):
		return steps.Errored(err)
	}
	if len(wrong) > 0 {
		fix := e.ApplyStep("walltime") + "    # with walltime.use: true"
		if values := reaperValues(ctx, e); values.Status == steps.Fail { // whoever installed it
			fix = values.Fix
		}
		return steps.Failed(strings.Join(wrong, "; "), fix)
	}
	return steps.Passed("namespaces labelled %s=%s", userLabel, userValue)
}

// reapedSpaces is the value of --reap-namespaces, which counts only without --namespace-labels, and reports whether it
// means all namespaces (OSC/job-pod-reaper: main.go, getNamespaces).
func reapedSpaces(d *appsv1.Deployment) (value string, all bool) {
	value, ok := argOf(d, "reap-namespaces")
	if !ok {
		value = "all"
	}
	return value, strings.EqualFold(value, "all") || slices.Contains(strings.Split(value, ","), "")
}

// userNamespaces are the namespaces that the hook has made, by its label.
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
		return steps.Skipped("no namespace has the label %s=%s yet: nobody has logged in", userLabel, userValue)
	case len(without) > 0:
		return steps.Failed(
			fmt.Sprintf(
				"%d of %d users' namespaces lack the RoleBinding: %s. Nothing is reaped in any", len(without), len(spaces),
				few(without),
			),
			bindReaper(e, without),
		)
	}
	return steps.Passed("all %d of them", len(spaces))
}

// few lists the first names of many.
func few(names []string) string { return check.FirstOf(names, 5, ", ") }

var reaperMetric = regexp.MustCompile(`(?m)^job_pod_reaper_error(?:\{[^}]*\})?\s+(\S+)`)

func reaperErrors(ctx context.Context, e steps.Env) steps.Result {
	all, err := reaperAt(ctx, e, reaperName)
	if err != nil {
		return steps.Errored(err)
	}
	pods, err := check.List[corev1.Pod](
		ctx, e.Cluster, check.Pods, reaperName, cluster.Selector{Labels: "app.kubernetes.io/name=" + reaperName},
	)
	if err != nil {
		return steps.Errored(err)
	}
	port := "8080"
	for _, d := range all {
		if at, ok := argOf(d, "listen-address"); ok {
			port = at[strings.LastIndex(at, ":")+1:]
		}
	}
	look := e.Kubectl() + " -n " + reaperName + " logs deployment/" + reaperName
	for _, p := range pods {
		if p.Status.Phase != corev1.PodRunning {
			continue
		}
		text, err := e.Cluster.Proxied(ctx, "pods", p.Namespace, p.Name, port, "metrics", nil)
		if err != nil {
			return steps.Skipped("its metrics can't be had through the API server (%s): %s", failure.Explain(err), look)
		}
		found := reaperMetric.FindSubmatch(text)
		switch {
		case found == nil:
			return steps.Skipped("pod %s has no metric job_pod_reaper_error", p.Name)
		case string(found[1]) != "0":
			return steps.Failed(
				"pod "+p.Name+" says job_pod_reaper_error "+clean.Text(string(found[1]))+": its last run ended part-way", look,
			)
		}
		return steps.Passed("pod %s says job_pod_reaper_error 0", p.Name)
	}
	return steps.Skipped("no pod of it runs in namespace %s", reaperName)
}

func appsSetWalltime(ctx context.Context, e steps.Env) steps.Result {
	spaces, err := userNamespaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	pods, err := check.List[corev1.Pod](
		ctx, e.Cluster, check.Pods, "", cluster.Selector{Labels: managedLabel + "=" + userValue},
	)
	if err != nil {
		return steps.Errored(err)
	}
	users := map[string]bool{}
	for _, ns := range spaces {
		users[ns.Name] = true
	}
	seen, without := 0, []string{}
	for _, p := range pods {
		if !users[p.Namespace] || check.Ended(p) {
			continue
		}
		if seen++; p.Annotations[lifetimeNote] == "" {
			without = append(without, p.Namespace+"/"+p.Name)
		}
	}
	switch {
	case seen == 0:
		return steps.Skipped("no app runs: there is no pod on which it could be seen")
	case len(without) > 0:
		return steps.Warned(
			fmt.Sprintf(
				"%d of %d pods have no annotation %s: %s. The reaper never ends them", len(without), seen, lifetimeNote,
				few(without),
			),
			"set script.wall_time in those apps' submit.yml.erb (in seconds)",
		)
	}
	return steps.Passed("all %d pods that run have one", seen)
}

// adoptReaper finds a reaper that is installed.
func adoptReaper(name string) func(context.Context, steps.Env) (any, string, error) {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		all, err := reaperAt(ctx, e, name)
		if err != nil || len(all) == 0 {
			return nil, "", err
		}
		return true, "Deployment " + all[0].Namespace + "/" + all[0].Name, nil
	}
}

// checkReaperVersion refuses charts that ignore objectLabels.
func checkReaperVersion(v string) error {
	have, err := version.ParseGeneric(v)
	if err != nil {
		return fmt.Errorf("a version such as %s", reaperVersion)
	}
	if have.LessThan(version.MustParseGeneric(reaperSince)) {
		return fmt.Errorf("%s or newer: older charts ignore objectLabels, and the reaper deletes more than apps", reaperSince)
	}
	return nil
}

// checkSource refuses what no chart can come from.
func checkSource(v string) error {
	switch scheme, _, remote := strings.Cut(v, "://"); {
	case !remote && !strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "."):
		return errors.New("a URL (https://…, oci://…), or the path of a folder")
	case remote && scheme != "https" && scheme != "http" && scheme != "oci":
		return fmt.Errorf("%s:// leads to no chart: https, http or oci do", scheme)
	}
	return nil
}
