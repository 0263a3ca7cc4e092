package interlink

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

// triedThrough returns the dependencies of requests through the endpoint. In mode proxy, the only dependency is the
// start of the proxy's pods, because the proxy reads its configuration and the cluster's CA at startup. Other modes
// have no dependencies.
func triedThrough(ctx context.Context, e steps.Env) ([]steps.Dependency, error) {
	if mode(e) != byProxy {
		return nil, nil
	}
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, space(e), proxyName)
	if apierrors.IsNotFound(err) {
		return nil, nil // the checks of earlier steps report the missing Deployment
	}
	if err != nil {
		return nil, err
	}
	since, err := check.PodsSince(
		ctx, e.Cluster, d.Namespace, cluster.Selector{Labels: metav1.FormatLabelSelector(d.Spec.Selector)},
	)
	return []steps.Dependency{{What: "the proxy's pods were started", Since: since}}, err
}

// askedOn returns what the recorded responses depend on.
func askedOn(ctx context.Context, e steps.Env) (steps.Tried, error) {
	var r apiReply
	_, ok, err := record(ctx, e, "asked.yaml", &r)
	if err != nil || !ok {
		return steps.Tried{}, err
	}
	return recordedOn(ctx, e, "asked.yaml", r.Time)
}

// recordedOn returns the time and the dependencies of a record. It prefers the API server's timestamp, because this
// machine's clock might be wrong.
func recordedOn(ctx context.Context, e steps.Env, file string, at time.Time) (steps.Tried, error) {
	what, _, _ := strings.Cut(file, ".")
	ns, name := workloadNamespace(e), recordName(e, what)
	key := fmt.Sprintf("recorded/%s/%s/%s/%s", e.Cluster.Server(), ns, name, at)
	w, err := tracked.Look(ctx, key, time.Hour, func(ctx context.Context) (check.Written, error) {
		return check.KeyWritten(ctx, e.Cluster, ns, name, file)
	})
	if err != nil {
		return steps.Tried{}, err
	}
	if !w.Changed.IsZero() {
		at = w.Changed
	}
	on, err := triedThrough(ctx, e)
	return steps.Tried{At: at, On: on}, err
}

// watchedOn returns what the recorded watch depends on.
func watchedOn(ctx context.Context, e steps.Env) (steps.Tried, error) {
	var r watched
	_, ok, err := record(ctx, e, "watched.yaml", &r)
	if err != nil || !ok {
		return steps.Tried{}, err
	}
	return recordedOn(ctx, e, "watched.yaml", r.Time.Add(time.Duration(r.Seconds)*time.Second))
}

// ranOn returns what the test Job depends on: the endpoint, the virtual node, and the virtual
// kubelet with its configuration.
func ranOn(ctx context.Context, e steps.Env) (steps.Tried, error) {
	j, err := check.Get[batchv1.Job](ctx, e.Cluster, check.Jobs, workloadNamespace(e), jobName(e))
	if apierrors.IsNotFound(err) {
		return steps.Tried{}, nil
	}
	if err != nil || j.Status.StartTime == nil {
		return steps.Tried{}, err
	}
	on, err := triedThrough(ctx, e)
	if err != nil {
		return steps.Tried{}, err
	}
	if n, err := check.Get[corev1.Node](ctx, e.Cluster, check.Nodes, "", nodeName(e)); err == nil {
		on = append(on, steps.Dependency{What: "node " + n.Name + " was registered", Since: n.CreationTimestamp.Time})
	} else if !apierrors.IsNotFound(err) {
		return steps.Tried{}, err
	}
	if m, err := check.Get[corev1.ConfigMap](
		ctx, e.Cluster, check.ConfigMaps, vkNamespace(e), vkConfigMap(e),
	); err == nil {
		s, err := startsOf(ctx, e, steps.HashOf(m.Data[kubeletConfigKey]))
		if err != nil {
			return steps.Tried{}, err
		}
		on = append(on, steps.Dependency{What: "the virtual kubelet's configuration was written", Since: s.Changed})
	} else if !apierrors.IsNotFound(err) {
		return steps.Tried{}, err
	}
	return steps.Tried{At: j.Status.StartTime.Time, On: on}, nil
}

// outdated reports whether a dependency of a record has changed since the record was written.
func outdated(ctx context.Context, e steps.Env, file string) (bool, error) {
	on := askedOn
	if file == "watched.yaml" {
		on = watchedOn
	}
	t, err := on(ctx, e)
	return t.Outdated(), err
}
