package ondemand

import (
	"context"
	"fmt"
	"strings"

	"carrick/cluster/chart"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// reaperName is the name of job-pod-reaper's namespace, ServiceAccount and ClusterRole. Upstream's hook hard-codes this
// name. carrick's Helm release has the same name.
const reaperName = "job-pod-reaper"

// lifetimeNote is the annotation that the adapter sets on the pods of an app with a wall_time.
const lifetimeNote = "pod.kubernetes.io/lifetime"

const reaperSource = "OSC/job-pod-reaper: charts/job-pod-reaper (values.yaml, templates), main.go"

const (
	reaperVersion = "0.14.0"
	// reaperSince is the first chart version that reads objectLabels. Older versions read podsLabels instead.
	reaperSince = "0.5.0"
)

func walltime() steps.Step {
	return steps.Step{
		Name: "walltime", Title: "Walltime",
		Map: steps.MapRow{Remote: "job-pod-reaper"},
		Why: "Kubernetes does not stop pods after a time limit. job-pod-reaper does, based on an annotation that the " +
			"adapter sets for apps with a wall_time. The chart ignores the published guide's Helm values, which belong under " +
			"config:, and deletes in every namespace.",
		Ask: []steps.Question{
			{
				Key: "walltime.enabled", Title: "Walltime limit for pods", Kind: steps.YesNo, On: steps.Remote,
				Adopt: adoptReaper(reaperName),
				Help: "Answer yes to install job-pod-reaper. USE_JOB_POD_REAPER in hook.env allows it to delete in users' " +
					"namespaces.",
				Default: steps.Fixed(false, "default; deleting pods is opt-in"),
			},
			{
				Key: "walltime.source", Title: "Chart source of job-pod-reaper", Kind: steps.Text, NotFromPeer: true,
				When: usesWalltime, Check: checkSource,
				Help:    "A chart repository (https://…, oci://…), or a directory on this machine that contains the chart.",
				Default: steps.Fixed("https://osc.github.io/job-pod-reaper", "upstream's repository"),
			},
			{
				Key: "walltime.version", Title: "Chart version of job-pod-reaper", Kind: steps.Text, NotFromPeer: true,
				When: usesWalltime, Check: checkReaperVersion,
				Help:    reaperSince + " or newer: older charts ignore objectLabels.",
				Default: steps.Fixed(reaperVersion, "the version that this guide was written for"),
			},
		},
		Actions: []steps.Action{
			{
				Name: "reaper-namespace", Title: "Create the namespace of job-pod-reaper", On: steps.Remote, When: usesWalltime,
				Needs: []string{"signed-in"}, Doer: action.Manifest{File: "reaper-namespace.yaml"},
			},
			{
				Name: "reaper", Title: "Install job-pod-reaper", On: steps.Remote, When: usesWalltime, Needs: []string{"signed-in"},
				Doer: action.Chart{
					Release: reaperName, Namespace: reaperName, Chart: reaperName,
					Source:  reaperChartSource("walltime.source", reaperName),
					Version: check.AnswerText("walltime.version"),
					Values: func(context.Context, steps.Env) (map[string]any, error) {
						return map[string]any{"config": reaperConfig()}, nil
					},
				},
			},
		},
		Checks: walltimeChecks(),
	}
}

func usesWalltime(e steps.Env) bool { return e.Answers.Bool("walltime.enabled") }

// reaperConfig returns the chart values that restrict job-pod-reaper to the objects of apps in users' namespaces.
func reaperConfig() map[string]any {
	return map[string]any{
		"reapNamespaces":  false,
		"namespaceLabels": userLabel + "=" + userValue,
		"objectLabels":    managedLabel + "=" + userValue,
	}
}

// managedLabel is the label that the adapter sets on all objects that it creates.
const managedLabel = "app.kubernetes.io/managed-by"

// reaperChartSource returns a func that reads the chart source from the answer key. If the answer is a directory, the
// chart is in its subdirectory with the chart's name.
func reaperChartSource(key, name string) func(context.Context, steps.Env) (chart.Source, error) {
	return func(_ context.Context, e steps.Env) (chart.Source, error) {
		from := strings.TrimRight(e.Answers.Text(key), "/")
		if !strings.Contains(from, "://") && !strings.HasSuffix(from, ".tgz") && !strings.HasSuffix(from, "/"+name) {
			from += "/" + name
		}
		return chart.Source(from), nil
	}
}

// bindReaper returns the commands that create the RoleBindings that the hook would create at the users' next login.
// namespaces must not be empty.
func bindReaper(e steps.Env, namespaces []string) string {
	var lines []string
	for _, ns := range namespaces {
		lines = append(
			lines, fmt.Sprintf("%s -n %s create rolebinding %s-rolebinding --clusterrole=%s --serviceaccount=%s:%s",
				e.Kubectl(), steps.Quoted(ns), reaperName, reaperName, reaperName, reaperName),
		)
	}
	lines[0] += "    # the hook creates it at the user's next login, with USE_JOB_POD_REAPER=true"
	return strings.Join(lines, "\n")
}
