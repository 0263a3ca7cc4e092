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
			Name: "prometheus-knows-pods", Title: "Prometheus has metrics of this cluster's pods", On: steps.Remote,
			From: "the API server's proxy, or this machine", When: usesIdle, Needs: []string{"signed-in"},
			Why: "If kube_pod_container_info is empty, the reaper assumes that no pod ran in any namespace, and deletes all " +
				"user namespaces after reapAfter.",
			References: []string{idleSource},
			Run:        prometheusKnows,
		},
		{
			Name: "idle-values", Title: "k8-namespace-reaper's values are under config:", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "The chart reads only config:, while Helm silently ignores values at the top level and rejects " +
				"options such as --prometheus-address.",
			References: []string{idleSource},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return valuesNested(ctx, e, idleName, idleName, idleConfig(e))
			},
		},
		{
			Name: "idle-regexp", Title: "k8-namespace-reaper deletes only users' namespaces", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "The reaper matches user-.+ anywhere in a name, but Prometheus matches the whole name. The reaper " +
				"would select old-user-data and always consider it idle.",
			References: []string{idleSource},
			Run:        idleExpression,
		},
		{
			Name: "idle-volumes", Title: "No user namespace contains a volume claim", On: steps.Remote, When: usesIdle,
			Needs:      []string{"signed-in"},
			Why:        "Deleting a namespace deletes its volume claims and, with most StorageClasses, their data.",
			References: []string{idleSource},
			Run:        idleVolumes,
		},
		{
			Name: "idle-ready", Title: "k8-namespace-reaper is running", On: steps.Remote, When: usesIdle,
			FixedBy:    "idle-reaper",
			Needs:      []string{"signed-in"},
			Why:        "Without the reaper, unused namespaces accumulate.",
			References: []string{idleSource},
			Run:        idleRuns,
		},
	}
}

func prometheusKnows(ctx context.Context, e steps.Env) steps.Result {
	e.Cluster.StartList("", check.Namespaces)
	address := e.Answers.Text("idle.prometheus")
	if address == "" {
		return steps.Failed("the address of Prometheus is unknown", "set idle.prometheus to the URL of Prometheus")
	}
	got, via, err := askPrometheus(ctx, e, address)
	switch {
	case via == "" && apierrors.IsNotFound(err):
		return steps.Failed(
			"no Service in the cluster has the address "+address,
			e.Kubectl()+" get services -A | grep -i prometheus    # then set idle.prometheus",
		)
	case apierrors.IsServiceUnavailable(err) || apierrors.IsNotFound(err):
		return steps.Failed(
			"Prometheus does not answer at "+via+": "+failure.Explain(err),
			e.Kubectl()+" get endpointslices -A | grep -i prometheus",
		)
	case err != nil:
		return steps.Errored(err)
	case got.Status != "success":
		return steps.Failed("Prometheus ("+via+") rejects the query: "+clean.Text(got.Error), "")
	}
	all := ". The reaper would then delete EVERY user namespace after " + e.Answers.Text("idle.after")
	missing := "install kube-state-metrics and configure this Prometheus to scrape it, or set idle.prometheus to a " +
		"Prometheus that does"
	if len(got.Data.Result) == 0 {
		return steps.Failed("Prometheus ("+via+") has no pod metrics: "+podQuery+" is empty"+all, missing)
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
					"Prometheus (%s) has the pods' namespaces in the label exported_namespace (%s), but the reaper reads the label "+
						"namespace%s", via,
					clean.Text(as), all,
				),
				"configure Prometheus to scrape kube-state-metrics with honor_labels: true (a ServiceMonitor: honorLabels: true)",
			)
		}
		text, _ := r.Value[1].(string)
		of, err := strconv.ParseFloat(text, 64)
		if err != nil || !(of > 0) {
			return steps.Failed("Prometheus ("+via+") returns "+strconv.Quote(clean.Text(text))+" for "+podQuery+all, missing)
		}
		known[r.Metric["namespace"]], n = true, n+of
	}
	if !slices.ContainsFunc(there, func(ns *corev1.Namespace) bool { return known[ns.Name] }) {
		return steps.Failed(
			fmt.Sprintf(
				"Prometheus (%s) has metrics of %.0f containers, but none of them is in a namespace of this cluster%s", via, n, all,
			),
			missing,
		)
	}
	return steps.Passed("Prometheus has metrics of %.0f containers in %d namespaces (%s)", n, len(known), via)
}

// idleExpression checks the arguments of the running reaper, even if another tool installed the reaper.
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
			return steps.Failed(
				at+" has neither --namespace-labels nor --namespace-regexp: it exits at start and deletes nothing", fix,
			)
		case text == "" && labels != userLabel+"="+userValue:
			return steps.Failed(
				fmt.Sprintf(
					"%s deletes namespaces labelled %s, but users' namespaces are labelled %s=%s", at, labels, userLabel, userValue,
				),
				fix,
			)
		case broken != nil:
			return steps.Failed(
				fmt.Sprintf("%s has --namespace-regexp=%s, which is not a valid regular expression: %v", at, text, broken), fix,
			)
		case text != "" && (!strings.HasPrefix(text, "^") || !strings.HasSuffix(text, "$")):
			others, err := alsoMatched(ctx, e, text)
			if err != nil {
				return steps.Errored(err)
			}
			found := fmt.Sprintf("%s has --namespace-regexp=%s, which matches anywhere in a name", at, text)
			if len(others) > 0 {
				return steps.Failed(found+"; the expression also matches "+few(others), fix)
			}
			return steps.Warned(found, fix)
		case labels != userLabel+"="+userValue:
			return steps.Warned(
				fmt.Sprintf("%s has no --namespace-labels=%s=%s, so it also deletes other namespaces whose names match",
					at, userLabel, userValue), fix,
			)
		}
	}
	return steps.Passed("%s selects namespaces by an anchored name and by label", all[0].Namespace+"/"+all[0].Name)
}

// alsoMatched returns the namespaces that match the expression text but do not belong to a user.
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
				"%d of %d user namespaces contain volume claims: %s. Deleting a namespace deletes its volume claims", len(with),
				len(spaces),
				few(with),
			),
			e.Kubectl()+" get persistentvolumeclaims -A    # or set persistentVolumeReclaimPolicy: Retain on their volumes",
		)
	}
	return steps.Passed("none of the %d user namespaces contains a volume claim", len(spaces))
}

func idleRuns(ctx context.Context, e steps.Env) steps.Result {
	all, err := reaperAt(ctx, e, idleName)
	if err != nil {
		return steps.Errored(err)
	}
	if len(all) == 0 {
		return steps.Undone("no Deployment runs " + idleName)
	}
	want, have := e.Answers.Text("idle.prometheus"), ""
	for _, d := range all {
		have, _ = argOf(d, "prometheus-address")
		if have == "" {
			return steps.Failed(
				d.Namespace+"/"+d.Name+" has no --prometheus-address, so it does not start", e.ApplyStep("idle"),
			)
		}
	}
	if have != want {
		return steps.Warned(
			fmt.Sprintf(
				"%s/%s queries %s, but the verified Prometheus is %s (idle.prometheus)", all[0].Namespace, all[0].Name, have, want,
			),
			e.ApplyStep("idle"),
		)
	}
	return check.Available(
		ctx, e, all[0].Namespace, all[0].Name, e.Kubectl()+" -n "+steps.Quoted(all[0].Namespace)+" describe pods",
	)
}
