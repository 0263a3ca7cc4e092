package renku

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

const metricsAPI = "v1beta1.metrics.k8s.io"

func apiChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "apis-available", Title: "All API groups are available", On: steps.Remote, Needs: []string{"signed-in"},
			Why:        "Renku starts with full API discovery, so one API group that returns 503 breaks its session lookups.",
			References: []string{"kr8s-org/kr8s: kr8s/_api.py"},
			Run:        apisAvailable,
		},
		{
			Name: "metrics", Title: "The metrics API is available", On: steps.Remote, Needs: []string{"signed-in"},
			Why: "The operator detects idle sessions from pod metrics. Without the metrics, idle sessions are never " +
				"hibernated.",
			References: []string{"SwissDataScienceCenter/amalthea: config/rbac (manager role)"},
			Run:        metricsAvailable,
		},
	}
}

func apisAvailable(ctx context.Context, e steps.Env) steps.Result {
	list, err := e.Cluster.List(ctx, check.APIServices, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	if len(list) == 0 {
		return steps.Errored(errors.New("listing APIServices: the list is empty, but every API server has some"))
	}
	var down []string
	for _, a := range list {
		if a.GetName() == metricsAPI {
			continue // has its own check
		}
		if ok, why := available(a); !ok {
			down = append(down, a.GetName()+" ("+why+")")
		}
	}
	if len(down) > 0 {
		return steps.Warned(
			"unavailable APIServices: "+strings.Join(down, ", "),
			e.Kubectl()+" get apiservices | grep False    # repair or delete their backends",
		)
	}
	return steps.Passed("all %d APIServices are available", len(list))
}

func metricsAvailable(ctx context.Context, e steps.Env) steps.Result {
	fix := "install metrics-server; then: " + e.Kubectl() + " top nodes"
	a, err := e.Cluster.Get(ctx, check.APIServices, "", metricsAPI)
	if apierrors.IsNotFound(err) {
		return steps.Warned("APIService "+metricsAPI+" does not exist, so idle sessions are never hibernated", fix)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if ok, why := available(a); !ok {
		return steps.Warned(metricsAPI+" is not available: "+why,
			e.Kubectl()+" describe apiservice "+metricsAPI+"    # shows the message and the Service behind the APIService")
	}
	return steps.Passed("%s is available", metricsAPI)
}

// available reports whether the Available condition of an APIService is true, and returns the
// condition's reason.
func available(a *unstructured.Unstructured) (bool, string) {
	c := check.Condition(a, "Available")
	if c == nil {
		return false, "no Available condition yet"
	}
	reason, _ := c["reason"].(string)
	return c["status"] == "True", reason
}
