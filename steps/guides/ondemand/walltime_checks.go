package ondemand

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

func walltimeChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "reaper-installed", Title: "The job-pod-reaper runs where the hook expects it", On: steps.Remote,
			When:    usesWalltime,
			FixedBy: "reaper", Needs: []string{"signed-in"},
			Why: "The hook binds ClusterRole job-pod-reaper to ServiceAccount job-pod-reaper in namespace job-pod-reaper. If " +
				"the ClusterRole is missing, the hook fails at login.",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/yaml/job-pod-reaper.yaml", reaperSource},
			Run:        reaperThere,
		},
		{
			Name: "reaper-values", Title: "The values of job-pod-reaper are under config:", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "Helm accepts values at the top level, as in the published guide, but the chart ignores them. The chart's " +
				"defaults reap every namespace.",
			References: []string{page, reaperSource},
			Run:        reaperValues,
		},
		{
			Name: "reaper-scope", Title: "The job-pod-reaper deletes only in users' namespaces", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "By default it reaps all namespaces. It also deletes unrelated Services, ConfigMaps and Secrets that " +
				"have a job label and whose pod is gone.",
			References: []string{reaperSource},
			Run:        reaperNarrow,
		},
		{
			Name: "reaper-grantable-permissions", Title: "The ServiceAccount has the permissions that it grants",
			On:   steps.Remote,
			When: usesWalltime, Needs: []string{"reaper-installed", "role-bound"},
			Why: "The hook binds the reaper's ClusterRole, and Kubernetes rejects a binding with permissions that its " +
				"creator does not have.",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/yaml/job-pod-reaper.yaml", reaperSource},
			Run:        func(ctx context.Context, e steps.Env) steps.Result { return holdsAll(ctx, e, reaperName) },
		},
		{
			Name: "reaper-errors", Title: "The last run of job-pod-reaper had no error", On: steps.Remote,
			From: "the API server's proxy", When: usesWalltime, Needs: []string{"reaper-installed"},
			Why:        "An error in one namespace aborts the run, and only a metric of the reaper shows the error.",
			References: []string{reaperSource},
			Run:        reaperErrors,
		},
		{
			Name: "apps-set-walltime", Title: "Apps set a walltime", On: steps.Remote, When: usesWalltime,
			Needs: []string{"signed-in"},
			Why: "Without wall_time in an app's submit.yml.erb its pods have no annotation, and the reaper never " +
				"deletes them.",
			References: []string{"OSC/ood_core: lib/ood_core/job/adapters/kubernetes/templates/pod.yml.erb"},
			Run:        appsSetWalltime,
		},
	}
}

// reaperBoundCheck belongs to the step that installs the hook, because the hook creates the RoleBindings.
func reaperBoundCheck() steps.Check {
	return steps.Check{
		Name: "reaper-bound", Title: "Every user's namespace allows job-pod-reaper to delete", On: steps.Remote,
		When:       usesWalltime,
		Needs:      []string{"reaper-installed"},
		Why:        "If a labelled namespace has no RoleBinding, the reaper aborts and deletes nothing in any namespace.",
		References: []string{reaperSource},
		Run:        reaperBound,
	}
}

// few joins the first five names and appends the number of remaining names.
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
			return steps.Skipped(
				"the metrics of job-pod-reaper are not available through the API server (%s); check the log: %s",
				failure.Explain(err), look,
			)
		}
		found := reaperMetric.FindSubmatch(text)
		switch {
		case found == nil:
			return steps.Skipped("pod %s has no metric job_pod_reaper_error", p.Name)
		case string(found[1]) != "0":
			return steps.Failed(
				"pod "+p.Name+" reports job_pod_reaper_error "+clean.Text(string(found[1]))+
					": the last run of the reaper was aborted", look,
			)
		}
		return steps.Passed("pod %s reports job_pod_reaper_error 0", p.Name)
	}
	return steps.Skipped("no pod of job-pod-reaper runs in namespace %s", reaperName)
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
		return steps.Skipped("no app is running, so there is no pod to check")
	case len(without) > 0:
		return steps.Warned(
			fmt.Sprintf(
				"%d of %d pods have no annotation %s, so the reaper never deletes them: %s", len(without), seen, lifetimeNote,
				few(without),
			),
			"set script.wall_time in those apps' submit.yml.erb (in seconds)",
		)
	}
	return steps.Passed("all %d running pods have the annotation", seen)
}

// adoptReaper returns a func that proposes yes if the reaper with the given name is installed.
func adoptReaper(name string) func(context.Context, steps.Env) (any, string, error) {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		all, err := reaperAt(ctx, e, name)
		if err != nil || len(all) == 0 {
			return nil, "", err
		}
		return true, "Deployment " + all[0].Namespace + "/" + all[0].Name, nil
	}
}

// checkReaperVersion rejects chart versions that ignore objectLabels.
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

func checkSource(v string) error {
	switch scheme, _, remote := strings.Cut(v, "://"); {
	case !remote && !strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "."):
		return errors.New("a URL (https://…, oci://…), or the path of a directory")
	case remote && scheme != "https" && scheme != "http" && scheme != "oci":
		return fmt.Errorf("%s:// is not supported: use https, http or oci", scheme)
	}
	return nil
}
