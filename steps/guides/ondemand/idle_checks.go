package ondemand

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

func idleChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "prometheus-knows-pods", Title: "Prometheus knows when pods ran", On: steps.Remote,
			From: "the API server's proxy, or this machine", When: usesIdle, Needs: []string{"signed-in"},
			Why: "the reaper asks for kube_pod_container_info. An empty answer means to it that no pod ran in any " +
				"namespace, and it deletes them all once reapAfter is over",
			References: []string{idleSource},
			Run:        prometheusKnows,
		},
		{
			Name: "idle-values", Title: "its values stand under config:", On: steps.Remote, Needs: []string{"signed-in"},
			Why: "Helm takes values at the top, and options such as --prometheus-address, without a word or not at " +
				"all; the chart reads config: alone",
			References: []string{idleSource},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return valuesNested(ctx, e, idleName, idleName, idleConfig(e))
			},
		},
		{
			Name: "idle-regexp", Title: "it deletes users' namespaces alone", On: steps.Remote, Needs: []string{"signed-in"},
			Why: "user-.+ is looked for anywhere in a name by the reaper, and for the whole name by Prometheus: a " +
				"namespace such as old-user-data is found by the one and never seen in use by the other",
			References: []string{idleSource},
			Run:        idleExpression,
		},
		{
			Name: "idle-volumes", Title: "no user's namespace holds a volume", On: steps.Remote, When: usesIdle,
			Needs:      []string{"signed-in"},
			Why:        "a namespace goes with its volume claims, and with most storage classes the data goes with them",
			References: []string{idleSource},
			Run:        idleVolumes,
		},
		{
			Name: "idle-runs", Title: "k8-namespace-reaper runs", On: steps.Remote, When: usesIdle, FixedBy: "idle-reaper",
			Needs:      []string{"signed-in"},
			Why:        "namespaces pile up otherwise",
			References: []string{idleSource},
			Run:        idleRuns,
		},
	}
}

func prometheusKnows(ctx context.Context, e steps.Env) steps.Result {
	e.Cluster.StartList("", check.Namespaces)
	address := e.Answers.Text("idle.prometheus")
	if address == "" {
		return steps.Failed("no address of Prometheus is known", "answer idle.prometheus")
	}
	got, via, err := askPrometheus(ctx, e, address)
	switch {
	case via == "" && apierrors.IsNotFound(err):
		return steps.Failed(
			"there is no Service of that address in the cluster: "+address,
			e.Kubectl()+" get services -A | grep -i prometheus    # then answer idle.prometheus",
		)
	case apierrors.IsServiceUnavailable(err) || apierrors.IsNotFound(err):
		return steps.Failed(
			"nothing answers behind "+via+": "+failure.Explain(err), e.Kubectl()+" get endpointslices -A | grep -i prometheus",
		)
	case err != nil:
		return steps.Errored(err)
	case got.Status != "success":
		return steps.Failed("Prometheus ("+via+") refuses the query: "+clean.Text(got.Error), "")
	}
	all := "; with that answer the reaper would delete EVERY user's namespace after " + e.Answers.Text("idle.after")
	missing := "install kube-state-metrics and have this Prometheus scrape it, or answer idle.prometheus with the " +
		"one that does"
	if len(got.Data.Result) == 0 {
		return steps.Failed("Prometheus ("+via+") knows of no pod at all: "+podQuery+" is empty"+all, missing)
	}
	there, err := check.List[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	known, n := map[string]bool{}, 0.0
	for _, r := range got.Data.Result {
		if as := r.Metric["exported_namespace"]; as != "" {
			return steps.Failed(
				fmt.Sprintf(
					"Prometheus (%s) keeps the pods' namespaces as exported_namespace (%s), and the reaper looks at namespace%s", via,
					clean.Text(as), all,
				),
				"have it scrape kube-state-metrics with honor_labels: true (a ServiceMonitor: honorLabels: true)",
			)
		}
		text, _ := r.Value[1].(string)
		of, err := strconv.ParseFloat(text, 64)
		if err != nil || !(of > 0) {
			return steps.Failed("Prometheus ("+via+") says "+strconv.Quote(clean.Text(text))+" to "+podQuery+all, missing)
		}
		known[r.Metric["namespace"]], n = true, n+of
	}
	if !slices.ContainsFunc(there, func(ns *corev1.Namespace) bool { return known[ns.Name] }) {
		return steps.Failed(
			fmt.Sprintf("Prometheus (%s) knows of %.0f containers, none of them in a namespace of this cluster%s", via, n, all),
			missing,
		)
	}
	return steps.Passed("%.0f containers in %d namespaces, says %s", n, len(known), via)
}

// idleExpression looks at the arguments of what runs, whoever installed it.
func idleExpression(ctx context.Context, e steps.Env) steps.Result {
	all, err := reaperAt(ctx, e, idleName)
	if err != nil {
		return steps.Errored(err)
	}
	if len(all) == 0 {
		return steps.Skipped("%s does not run on this cluster", idleName)
	}
	for _, d := range all {
		at := d.Namespace + "/" + d.Name
		text, _ := argOf(d, "namespace-regexp")
		labels, _ := argOf(d, "namespace-labels")
		fix := fmt.Sprintf(
			"%s -n %s upgrade %s CHART --reuse-values --set %s --set %s", e.Helm(), steps.Quoted(d.Namespace), idleName,
			steps.Quoted("config.namespaceRegexp="+anchored(e)), steps.Quoted("config.namespaceLabels="+userLabel+"="+userValue),
		)
		_, broken := regexp.Compile(text)
		switch {
		case text == "" && labels == "":
			return steps.Failed(at+" has neither --namespace-labels nor --namespace-regexp: "+
				"it exits when it starts, and deletes nothing", fix)
		case text == "" && labels != userLabel+"="+userValue:
			return steps.Failed(
				fmt.Sprintf(
					"%s deletes namespaces labelled %s, which are not the users' (%s=%s)", at, labels, userLabel, userValue,
				),
				fix,
			)
		case broken != nil:
			return steps.Failed(fmt.Sprintf("%s has --namespace-regexp=%s, which is none: %v", at, text, broken), fix)
		case text != "" && (!strings.HasPrefix(text, "^") || !strings.HasSuffix(text, "$")):
			others, err := alsoMatched(ctx, e, text)
			if err != nil {
				return steps.Errored(err)
			}
			found := fmt.Sprintf("%s has --namespace-regexp=%s, which is looked for anywhere in a name", at, text)
			if len(others) > 0 {
				return steps.Failed(found+"; it finds "+few(others)+", too", fix)
			}
			return steps.Warned(found, fix)
		case labels != userLabel+"="+userValue:
			return steps.Warned(
				fmt.Sprintf("%s has no --namespace-labels=%s=%s: a namespace that is called like a user's is deleted, too",
					at, userLabel, userValue), fix,
			)
		}
	}
	return steps.Passed("%s, by an anchored name and by label", all[0].Namespace+"/"+all[0].Name)
}

// alsoMatched are namespaces that an expression finds and that are no user's.
func alsoMatched(ctx context.Context, e steps.Env, text string) ([]string, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	all, err := check.List[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, ns := range all {
		if re.MatchString(ns.Name) && ns.Labels[userLabel] != userValue {
			out = append(out, ns.Name)
		}
	}
	return out, nil
}

func idleVolumes(ctx context.Context, e steps.Env) steps.Result {
	var spaces []*corev1.Namespace
	var claims []*unstructured.Unstructured
	if err := check.Together(
		func() (err error) { spaces, err = userNamespaces(ctx, e); return err },
		func() (err error) {
			claims, err = e.Cluster.List(ctx, check.VolumeClaims, "", cluster.Selector{})
			return err
		},
	); err != nil {
		return steps.Errored(err)
	}
	var with []string
	for _, c := range claims {
		is := slices.ContainsFunc(spaces, func(ns *corev1.Namespace) bool { return ns.Name == c.GetNamespace() })
		if is && !slices.Contains(with, c.GetNamespace()) {
			with = append(with, c.GetNamespace())
		}
	}
	if len(with) > 0 {
		return steps.Warned(
			fmt.Sprintf(
				"%d of %d users' namespaces hold volume claims: %s. They go with the namespace", len(with), len(spaces), few(with),
			),
			e.Kubectl()+" get persistentvolumeclaims -A    # or give their volumes persistentVolumeReclaimPolicy: Retain",
		)
	}
	return steps.Passed("none of %d holds a volume claim", len(spaces))
}

func idleRuns(ctx context.Context, e steps.Env) steps.Result {
	all, err := reaperAt(ctx, e, idleName)
	if err != nil {
		return steps.Errored(err)
	}
	if len(all) == 0 {
		return steps.Undone("there is no Deployment of " + idleName)
	}
	want, have := e.Answers.Text("idle.prometheus"), ""
	for _, d := range all {
		have, _ = argOf(d, "prometheus-address")
		if have == "" {
			return steps.Failed(
				d.Namespace+"/"+d.Name+" has no --prometheus-address: it does not start", e.ApplyStep("idle"),
			)
		}
	}
	if have != want {
		return steps.Warned(
			fmt.Sprintf("%s/%s asks %s, and what was proved is %s (idle.prometheus)", all[0].Namespace, all[0].Name, have, want),
			e.ApplyStep("idle"),
		)
	}
	return check.Available(
		ctx, e.Cluster, all[0].Namespace, all[0].Name, e.Kubectl()+" -n "+steps.Quoted(all[0].Namespace)+" describe pods",
	)
}
