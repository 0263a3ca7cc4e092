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

// reaperName is what upstream's hook hard-codes: the release, its namespace, its
// ServiceAccount and its ClusterRole.
const reaperName = "job-pod-reaper"

// lifetimeNote is the annotation that the adapter sets where an app has a
// wall_time.
const lifetimeNote = "pod.kubernetes.io/lifetime"

const reaperSource = "OSC/job-pod-reaper: charts/job-pod-reaper (values.yaml, templates), main.go"

const (
	reaperVersion = "0.14.0"
	// reaperSince is the first chart that reads objectLabels. Older ones read podsLabels and ignore it.
	reaperSince = "0.5.0"
)

func walltime() steps.Step {
	return steps.Step{
		Name: "walltime", Title: "Walltime",
		Why: "Kubernetes ends no pod because its time is over: job-pod-reaper does, by an annotation that the adapter sets " +
			"where an app has a wall_time. Its values stand under config: in Helm; as the published page has them they are " +
			"ignored without a word, and it deletes in every namespace of the cluster.",
		Ask: []steps.Question{
			{
				Key: "walltime.use", Title: "Pods end with their walltime", Kind: steps.YesNo, On: steps.Remote,
				Adopt:   adoptReaper(reaperName),
				Help:    "Installs job-pod-reaper; USE_JOB_POD_REAPER in hook.env lets it delete in users' namespaces.",
				Default: steps.Fixed(false, "it deletes pods: that is to be wanted"),
			},
			{
				Key: "walltime.source", Title: "Where its chart comes from", Kind: steps.Text, NotFromPeer: true,
				When: usesWalltime, Check: checkSource,
				Help:    "A chart repository (https://…, oci://…), or a folder of this machine that holds the chart.",
				Default: steps.Fixed("https://osc.github.io/job-pod-reaper", "upstream's own"),
			},
			{
				Key: "walltime.version", Title: "Version of its chart", Kind: steps.Text, NotFromPeer: true,
				When: usesWalltime, Check: checkReaperVersion,
				Help:    reaperSince + " or newer: older charts ignore objectLabels.",
				Default: steps.Fixed(reaperVersion, "what this guide was written for"),
			},
		},
		Actions: []steps.Action{
			{
				Name: "reaper-namespace", Title: "Make the namespace of job-pod-reaper", On: steps.Remote, When: usesWalltime,
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

func usesWalltime(e steps.Env) bool { return e.Answers.Bool("walltime.use") }

// reaperConfig keeps it to users' namespaces, and to the pods of apps there.
func reaperConfig() map[string]any {
	return map[string]any{
		"reapNamespaces":  false,
		"namespaceLabels": userLabel + "=" + userValue,
		"objectLabels":    managedLabel + "=" + userValue,
	}
}

// managedLabel is on what the adapter submits.
const managedLabel = "app.kubernetes.io/managed-by"

// reaperChartSource is where a chart comes from: of a folder, the folder in it that
// has the chart's name.
func reaperChartSource(key, name string) func(context.Context, steps.Env) (chart.Source, error) {
	return func(_ context.Context, e steps.Env) (chart.Source, error) {
		from := strings.TrimRight(e.Answers.Text(key), "/")
		if !strings.Contains(from, "://") && !strings.HasSuffix(from, ".tgz") && !strings.HasSuffix(from, "/"+name) {
			from += "/" + name
		}
		return chart.Source(from), nil
	}
}

// bindReaper creates what the hook creates at a user's next login.
func bindReaper(e steps.Env, namespaces []string) string {
	var lines []string
	for _, ns := range namespaces {
		lines = append(
			lines, fmt.Sprintf("%s -n %s create rolebinding %s-rolebinding --clusterrole=%s --serviceaccount=%s:%s",
				e.Kubectl(), steps.Quoted(ns), reaperName, reaperName, reaperName, reaperName),
		)
	}
	lines[0] += "    # the hook makes it at the user's next login, with USE_JOB_POD_REAPER=true"
	return strings.Join(lines, "\n")
}
