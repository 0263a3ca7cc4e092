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

// idleName is the Helm chart of the namespace reaper. carrick's release and its namespace have the same name.
const idleName = "k8-namespace-reaper"

const idleSource = "OSC/k8-namespace-reaper: charts/k8-namespace-reaper (values.yaml, templates), main.go"

func idle() steps.Step {
	return steps.Step{
		Name: "idle", Title: "Idle namespaces",
		Map: steps.MapRow{Remote: "namespace reaper"},
		Why: "k8-namespace-reaper deletes a user's namespace, with everything in it, if Prometheus has seen no pod there " +
			"for some time. Without pod metrics, every namespace looks idle, so this step comes last.",
		Ask: []steps.Question{
			{
				Key: "idle.enabled", Title: "Deletion of idle user namespaces", Kind: steps.YesNo, On: steps.Remote,
				Adopt: adoptReaper(idleName),
				Help: "Enter yes to install k8-namespace-reaper. The hook recreates a deleted namespace, empty, at the user's " +
					"next login.",
				Default: steps.Fixed(false, "default, because the reaper deletes namespaces with everything in them"),
			},
			{
				Key: "idle.prometheus", Title: "Prometheus URL inside the cluster", Kind: steps.URL,
				On: steps.Remote, When: usesIdle,
				Help: "The address at which pods reach Prometheus: http://SERVICE.NAMESPACE:PORT. This Prometheus must have " +
					"the metrics of kube-state-metrics for this cluster.",
				Default: steps.FromFact("prometheus", "from a Service of the cluster"),
			},
			{
				Key: "idle.after", Title: "Idle time before deletion", Kind: steps.Text, NotFromPeer: true, When: usesIdle,
				Check: checkDuration,
				Help: "A duration such as 168h. If the duration exceeds the retention time of Prometheus, namespaces in use " +
					"can look idle.",
				Default: steps.Fixed("168h", "the chart's default; the published guide's 8h is only one working day"),
			},
			{
				Key: "idle.last-used", Title: "Minimum time since the last login", Kind: steps.Text,
				NotFromPeer: true, When: usesIdle, Check: checkDuration,
				Help: "A duration such as 4h. The reaper keeps a namespace for this long after each login. The hook records " +
					"the login in an annotation.",
				Default: steps.Fixed("4h", "the chart's default"),
			},
			{
				Key: "idle.source", Title: "Chart source", Kind: steps.Text, NotFromPeer: true, When: usesIdle,
				Check:   checkSource,
				Help:    "A chart repository (https://…, oci://…), or a directory on this machine that contains the chart.",
				Default: steps.Fixed("https://osc.github.io/k8-namespace-reaper", "upstream's repository"),
			},
			{
				Key: "idle.version", Title: "Chart version", Kind: steps.Text, NotFromPeer: true, When: usesIdle,
				Help:    "A version in the chart repository, such as 0.11.0.",
				Default: steps.Fixed("0.11.0", "the version that this guide was written for"),
			},
		},
		Facts: []steps.Fact{
			{Name: "prometheus", Title: "a Prometheus in the cluster", On: steps.Remote, Learn: findPrometheus},
		},
		Actions: []steps.Action{
			{
				Name: "idle-namespace", Title: "Create the namespace of k8-namespace-reaper", On: steps.Remote, When: usesIdle,
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

// afterPrometheus is a manifest that carrick applies only after a successful Prometheus query. Its plan includes the
// permission for the query, so that a missing permission is reported before carrick writes anything.
type afterPrometheus struct{ action.Manifest }

// Plan adds the permission for the query to the required permissions.
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

func usesIdle(e steps.Env) bool { return e.Answers.Bool("idle.enabled") }

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

// anchored returns a regular expression that matches only complete names of users' namespaces. The reaper matches an
// unanchored expression anywhere in a name.
func anchored(e steps.Env) string { return "^" + regexp.QuoteMeta(namespacePrefix(e)) + ".+$" }

func checkDuration(v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < time.Hour {
		return errors.New("must be a duration of at least one hour, such as 8h or 168h")
	}
	return nil
}

// prometheusLabels lists the labels that common charts set on Prometheus Services.
var prometheusLabels = []string{
	"app.kubernetes.io/name=prometheus", "app=kube-prometheus-stack-prometheus", "app=prometheus",
}

// prometheusNamespaces lists the namespaces that common charts and distributions use for Prometheus.
var prometheusNamespaces = []string{
	"monitoring", "prometheus", "kube-prometheus-stack", "kube-system", "openshift-monitoring", "cattle-monitoring-system",
}

const answerPrometheus = "set idle.prometheus to the address of the Prometheus with this cluster's pod metrics"

// findPrometheus returns the address of the Service that looks like Prometheus. The responses from this Service decide
// which namespaces are deleted, and any user with a namespace can create a similar Service. Therefore findPrometheus
// requires exactly one such Service in prometheusNamespaces.
func findPrometheus(ctx context.Context, e steps.Env) (any, error) {
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
	maps.DeleteFunc(usual, func(ns, _ string) bool { return !slices.Contains(prometheusNamespaces, ns) })
	switch found := slices.Sorted(maps.Values(usual)); {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("several Services look like Prometheus: %s; %s", strings.Join(found, ", "), answerPrometheus)
	case len(at) == 0:
		return nil, steps.Absent("no Service has the labels of a Prometheus")
	}
	return nil, fmt.Errorf(
		"services that look like Prometheus exist only outside the usual namespaces (%s), where any user can create "+
			"one: %s; %s",
		strings.Join(prometheusNamespaces, ", "), strings.Join(slices.Sorted(maps.Values(at)), ", "), answerPrometheus,
	)
}
