package interlink

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/check"
)

// causeNote is an annotation on the proxy's pods. Its value is the hash of the files that nginx reads only when it
// starts.
const causeNote = "carrick/started-with"

// proxyCause returns the annotation's value. The proxy's pods restart when it changes: if the files change, or if the
// pods started before the current nginx.conf was written.
func proxyCause(ctx context.Context, e steps.Env) (any, error) {
	hash, err := proxyHash(ctx, e)
	if err != nil {
		return nil, err
	}
	d, err := theProxy(ctx, e)
	if apierrors.IsNotFound(err) {
		return hash, nil
	}
	if err != nil {
		return nil, err
	}
	now := d.Spec.Template.Annotations[causeNote]
	if !isFor(now, hash) {
		return hash, nil
	}
	pods, err := check.PodsOf(ctx, e.Cluster, d)
	if err != nil {
		return nil, err
	}
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return check.Ended(p) || p.DeletionTimestamp != nil })
	rolling := slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Annotations[causeNote] != now })
	if rolling || len(pods) == 0 {
		return now, nil
	}
	old, err := proxyOutdated(ctx, e, pods)
	if err != nil || !old {
		return now, err
	}
	return again(now, hash), nil
}

func theProxy(ctx context.Context, e steps.Env) (*appsv1.Deployment, error) {
	return check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, space(e), proxyName)
}

// proxyHash returns the hash of the files that nginx reads only when it starts.
func proxyHash(ctx context.Context, e steps.Env) (string, error) {
	conf, err := shippedConf(e).encode()
	if err != nil {
		return "", err
	}
	ca, err := kubeCA(ctx, e, "default")
	if err != nil {
		return "", err
	}
	return masked.New(fmt.Sprint(conf, ca)).Hash(), nil
}

// proxyOutdated reports whether the next apply writes nginx.conf, or a pod started before nginx.conf was written.
func proxyOutdated(ctx context.Context, e steps.Env, pods []*corev1.Pod) (bool, error) {
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, space(e), proxyName)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	conf, err := shippedConf(e).encode()
	if err != nil || m.Data["nginx.conf"] != conf {
		return true, err
	}
	p, _, err := startedBefore(ctx, e, pods)
	return p != nil, err
}

// proxyRestarts reports whether the next apply creates the proxy, or starts new pods of the proxy that carrick created.
func proxyRestarts(ctx context.Context, e steps.Env) (bool, error) {
	if !in(byProxy)(e) {
		return false, nil
	}
	d, err := theProxy(ctx, e)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil || d.Spec.Template.Annotations[causeNote] == "" {
		return false, err
	}
	if n := d.Spec.Replicas; n != nil && *n == 0 {
		return true, nil
	}
	want, err := proxyCause(ctx, e)
	return err == nil && want != d.Spec.Template.Annotations[causeNote], err
}

func proxyCurrent(ctx context.Context, e steps.Env) steps.Result {
	d, err := theProxy(ctx, e)
	if err != nil {
		return check.Missing(err, "Deployment "+space(e)+"/"+proxyName, "")
	}
	want, err := proxyHash(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	have := d.Spec.Template.Annotations[causeNote]
	if have != "" && !isFor(have, want) {
		return steps.Failed("the proxy's pods run with an outdated nginx.conf or cluster CA", "")
	}
	pods, err := check.PodsOf(ctx, e.Cluster, d)
	if err != nil {
		return steps.Errored(err)
	}
	old, written, err := startedBefore(ctx, e, pods) // nginx.conf might have been changed and restored
	switch {
	case err != nil:
		return steps.Errored(err)
	case old != nil:
		return steps.Failed(
			fmt.Sprintf(
				"pod %s has been running since %s, but nginx.conf was written on %s", old.Name,
				old.Status.StartTime.UTC().Format(time.DateTime), written.UTC().Format(time.DateTime),
			), "",
		)
	case have == "":
		return steps.Passed("the proxy's pods started after nginx.conf was written")
	}
	if r, rolling := rollout(e, d, pods); rolling {
		return r
	}
	return steps.Passed("the proxy's pods run with the current files; a renewed certificate requires no restart")
}

// startedBefore returns a pod that started before the last change to nginx.conf, or nil, and the time of the change.
func startedBefore(ctx context.Context, e steps.Env, pods []*corev1.Pod) (*corev1.Pod, time.Time, error) {
	w, err := check.KeyWritten(ctx, e.Cluster, space(e), proxyName, "nginx.conf")
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, p := range pods {
		if !check.Ended(p) && p.DeletionTimestamp == nil && p.Status.StartTime != nil &&
			p.Status.StartTime.Time.Before(w.Changed) {
			return p, w.Changed, nil
		}
	}
	return nil, w.Changed, nil
}

// rollout returns a result that waits for the end of a rollout. If no pod of an earlier template exists, the bool is
// false. When such a pod ends, it ends its connections.
func rollout(e steps.Env, d *appsv1.Deployment, pods []*corev1.Pod) (steps.Result, bool) {
	var since time.Time
	earlier := ""
	for _, p := range pods {
		if p.CreationTimestamp.After(since) {
			since = p.CreationTimestamp.Time
		}
		if !check.Ended(p) && p.Annotations[causeNote] != d.Spec.Template.Annotations[causeNote] {
			earlier = p.Name
		}
	}
	return steps.Waits(since, "pod %s of the previous rollout still exists", earlier).
		Or(e.Kubectl() + " rollout status deployment " + proxyName + " -n " + d.Namespace), earlier != ""
}
