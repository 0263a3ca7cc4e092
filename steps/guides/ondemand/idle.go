package ondemand

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// idleName is the chart of the namespace reaper, and what carrick calls its
// release and its namespace.
const idleName = "k8-namespace-reaper"

const idleSource = "OSC/k8-namespace-reaper: charts/k8-namespace-reaper (values.yaml, templates), main.go"

func idle() steps.Step {
	return steps.Step{
		Name: "idle", Title: "Idle namespaces",
		Why: "The hook makes a namespace for everybody who ever logs in, and nothing takes one away: k8-namespace-reaper " +
			"deletes those that nobody has used for a while, with all that is in them. It asks Prometheus when a pod last ran " +
			"there. A Prometheus that does not know says the same as one that saw none: so this comes last.",
		Ask: []steps.Question{
			{
				Key: "idle.use", Title: "Idle users' namespaces are deleted", Kind: steps.YesNo, On: steps.Remote,
				Adopt:   adoptReaper(idleName),
				Help:    "Installs k8-namespace-reaper. A namespace comes back empty with its user's next login.",
				Default: steps.Fixed(false, "it deletes namespaces with all that is in them: that is to be wanted"),
			},
			{
				Key: "idle.prometheus", Title: "Address of Prometheus, as a pod of the cluster reaches it", Kind: steps.URL,
				On: steps.Remote, When: usesIdle,
				Help:    "http://SERVICE.NAMESPACE:PORT. It must have the metrics of kube-state-metrics for this cluster.",
				Default: steps.FromFact("prometheus", "a Service of the cluster"),
			},
			{
				Key: "idle.after", Title: "How long a namespace may be unused", Kind: steps.Text, NotFromPeer: true, When: usesIdle,
				Check: checkDuration,
				Help: "A duration such as 168h. No longer than Prometheus keeps what it knows: what it has forgotten counts " +
					"as never used.",
				Default: steps.Fixed("168h", "the chart's default; the published page's 8h is a day's work"),
			},
			{
				Key: "idle.last-used", Title: "How long after a login a namespace is left alone in any case", Kind: steps.Text,
				NotFromPeer: true, When: usesIdle, Check: checkDuration,
				Help:    "By the annotation that the hook renews at each login.",
				Default: steps.Fixed("4h", "the chart's default"),
			},
			{
				Key: "idle.source", Title: "Where its chart comes from", Kind: steps.Text, NotFromPeer: true, When: usesIdle,
				Check:   checkSource,
				Help:    "A chart repository (https://…, oci://…), or a folder of this machine that holds the chart.",
				Default: steps.Fixed("https://osc.github.io/k8-namespace-reaper", "upstream's own"),
			},
			{
				Key: "idle.version", Title: "Version of its chart", Kind: steps.Text, NotFromPeer: true, When: usesIdle,
				Help:    "As the chart repository lists it.",
				Default: steps.Fixed("0.11.0", "what this guide was written for"),
			},
		},
		Facts: []steps.Fact{
			{Name: "prometheus", Title: "a Prometheus in the cluster", On: steps.Remote, Learn: prometheusThere},
		},
		Actions: []steps.Action{
			{
				Name: "idle-namespace", Title: "Make the namespace of k8-namespace-reaper", On: steps.Remote, When: usesIdle,
				Needs: []string{"prometheus-knows-pods"}, Doer: afterPrometheus{action.Manifest{File: "idle-namespace.yaml"}},
			},
			{
				Name: "idle-reaper", Title: "Install k8-namespace-reaper", On: steps.Remote, When: usesIdle,
				Needs: []string{"prometheus-knows-pods"},
				Doer: action.Chart{
					Release: idleName, Namespace: idleName, Chart: idleName,
					Source: reaperChartSource("idle.source", idleName), Version: check.AnswerText("idle.version"),
					Values: func(_ context.Context, e steps.Env) (map[string]any, error) {
						return map[string]any{"config": idleConfig(e)}, nil
					},
				},
			},
		},
		Checks: idleChecks(),
	}
}

// afterPrometheus is what is not made before Prometheus was asked: who may not ask
// it is told so before anything is written.
type afterPrometheus struct{ action.Manifest }

// Plan has the right to ask it among those that it takes.
func (m afterPrometheus) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := m.Manifest.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	_, ns, inside, err := prometheusService(ctx, e, e.Answers.Text("idle.prometheus"))
	if inside && err == nil {
		c.Permissions = append(
			c.Permissions, permission.Rule{Verb: "get", Resource: "services", Subresource: "proxy", Namespace: ns},
		)
	}
	return c, nil
}

func usesIdle(e steps.Env) bool { return e.Answers.Bool("idle.use") }

func idleConfig(e steps.Env) map[string]any {
	return map[string]any{
		"namespaceLabels":             userLabel + "=" + userValue,
		"namespaceRegexp":             anchored(e),
		"namespaceLastUsedAnnotation": seenNote,
		"prometheusAddress":           e.Answers.Text("idle.prometheus"),
		"reapAfter":                   e.Answers.Text("idle.after"),
		"lastUsedThreshold":           e.Answers.Text("idle.last-used"),
		"interval":                    "2h",
	}
}

// anchored matches users' namespaces as a whole: the reaper looks for the
// expression anywhere in a name.
func anchored(e steps.Env) string { return "^" + regexp.QuoteMeta(namespacePrefix(e)) + ".+$" }

func checkDuration(v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < time.Hour {
		return errors.New("a duration of an hour or more, such as 8h or 168h")
	}
	return nil
}

// prometheusLabels are those of the Services of usual charts.
var prometheusLabels = []string{
	"app.kubernetes.io/name=prometheus", "app=kube-prometheus-stack-prometheus", "app=prometheus",
}

// prometheusSpaces are the namespaces in which usual charts and distributions have Prometheus.
var prometheusSpaces = []string{
	"monitoring", "prometheus", "kube-prometheus-stack", "kube-system", "openshift-monitoring", "cattle-monitoring-system",
}

const answerPrometheus = "answer idle.prometheus with the one that knows this cluster's pods"

// prometheusThere finds a Service that looks like one. Whoever has a namespace can create such a Service, and what
// answers there decides which namespaces are deleted: it counts in the usual namespaces alone, and only if it is the
// only one.
func prometheusThere(ctx context.Context, e steps.Env) (any, error) {
	at := map[string]string{} // by namespace
	prefix := namespacePrefix(e)
	for _, label := range prometheusLabels {
		e.Cluster.StartSelected(check.Services, "", cluster.Selector{Labels: label})
	}
	for _, label := range prometheusLabels {
		found, err := e.Cluster.List(ctx, check.Services, "", cluster.Selector{Labels: label})
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			s, err := check.As[corev1.Service](o)
			if err != nil {
				return nil, err
			}
			if at[s.Namespace] != "" || prefix != "" && strings.HasPrefix(s.Namespace, prefix) {
				continue
			}
			for _, p := range s.Spec.Ports {
				if p.Port == 9090 || p.Name == "http" || p.Name == "http-web" || p.Name == "web" {
					at[s.Namespace] = fmt.Sprintf("http://%s.%s:%d", s.Name, s.Namespace, p.Port)
					break
				}
			}
		}
	}
	usual := maps.Clone(at)
	maps.DeleteFunc(usual, func(ns, _ string) bool { return !slices.Contains(prometheusSpaces, ns) })
	switch found := slices.Sorted(maps.Values(usual)); {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("several Services look like Prometheus: %s; %s", strings.Join(found, ", "), answerPrometheus)
	case len(at) == 0:
		return nil, steps.Absent("no Service has the labels of a Prometheus")
	}
	return nil, fmt.Errorf(
		"what looks like Prometheus stands where anybody may have made it, in none of the usual namespaces (%s): %s; %s",
		strings.Join(prometheusSpaces, ", "), strings.Join(slices.Sorted(maps.Values(at)), ", "), answerPrometheus,
	)
}
