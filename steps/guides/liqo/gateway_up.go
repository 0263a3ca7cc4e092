package liqo

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
	"carrick/steps/check"
)

// sideGateway returns the gateway of the kind that the answers assign to this side, or an AbsentError if no such
// gateway exists.
func sideGateway(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	all, err := sideGateways(ctx, e)
	if err != nil {
		return nil, err
	}
	if right := ofKind(all, wantedKind(e)); len(right) > 0 {
		return right[0], nil
	}
	return nil, steps.Absent("the %s has no %s", e.SideName(), wantedKind(e))
}

// gatewayObjectName returns the name of the objects that Liqo creates for a gateway (liqotech/liqo:
// pkg/gateway/forge/utils.go).
func gatewayObjectName(gateway *unstructured.Unstructured) string { return "gw-" + gateway.GetName() }

func gatewayUp(ctx context.Context, e steps.Env) steps.Result {
	g, err := sideGateway(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	name := gatewayObjectName(g)
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, g.GetNamespace(), name)
	if apierrors.IsNotFound(err) {
		return steps.Waits(
			g.GetCreationTimestamp().Time, "Liqo has not created Deployment %s/%s for %s %s yet", g.GetNamespace(), name,
			g.GetKind(),
			g.GetName(),
		).
			Or(inTenant(e) + "get events; " + controllerLog(e))
	}
	if err != nil {
		return steps.Errored(err)
	}
	if d.Status.ReadyReplicas == 0 {
		return gatewayDown(ctx, e, d)
	}
	if text(g, "status", "secretRef", "name") == "" {
		return steps.Waits(
			g.GetCreationTimestamp().Time,
			"%s %s runs, but its status does not reference a Secret with its keys yet (status.secretRef)",
			g.GetKind(), placeOf(g),
		).Or(controllerLog(e))
	}
	return steps.Passed("%d of %d replicas of %s are ready", d.Status.ReadyReplicas, replicas(d), name)
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

func controllerLog(e steps.Env) string {
	space, err := liqoSpace(e)
	if err != nil {
		space = usualNamespace
	}
	return e.Kubectl() + " -n " + steps.Quoted(space) + " logs deployment/liqo-controller-manager --tail=50"
}

// gatewayDown returns the verdict on a gateway without a ready pod. The verdict includes the reason that Kubernetes
// reports, such as a rejected pod or a waiting container.
func gatewayDown(ctx context.Context, e steps.Env, d *appsv1.Deployment) steps.Result {
	if why := check.ReplicaFailure(d); why != "" {
		return notLetIn(e, d, why)
	}
	since := d.CreationTimestamp.Time
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status != corev1.ConditionTrue && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	why, err := podsTrouble(ctx, e, d)
	if err != nil {
		return steps.Errored(err)
	}
	fix := inTenant(e) + "describe pods"
	if strings.Contains(why, "CrashLoopBackOff") {
		fix = inTenant(e) + "logs deployment/" + steps.Quoted(d.Name) + " --all-containers --previous --tail=20"
	}
	return steps.Waits(since, "no pod of Deployment %s/%s is ready%s", d.Namespace, d.Name, why).Or(fix)
}

func notLetIn(e steps.Env, d *appsv1.Deployment, why string) steps.Result {
	found := fmt.Sprintf("no pod of Deployment %s/%s can be created: %s", d.Namespace, d.Name, why)
	if strings.Contains(why, "PodSecurity") {
		return steps.Failed(
			found,
			e.Kubectl()+" label --overwrite namespace "+steps.Quoted(d.Namespace)+" "+check.EnforceLabel+"=privileged",
		)
	}
	fix := check.RefusedFix(e.Kubectl(), steps.Quoted(d.Namespace), why)
	if fix == "" {
		fix = inTenant(e) + "describe deployment " + steps.Quoted(d.Name)
	}
	return steps.Failed(found, fix)
}

// podsTrouble returns the reason why no pod of a Deployment is ready, in the format ": REASON". If no reason is known,
// it returns "".
func podsTrouble(ctx context.Context, e steps.Env, d *appsv1.Deployment) (string, error) {
	pods, err := check.PodsOf(ctx, e.Cluster, d)
	if err != nil {
		return "", err
	}
	for _, p := range pods {
		if why := podTrouble(p); why != "" {
			return fmt.Sprintf(": pod %s: %s", p.Name, why), nil
		}
	}
	if len(pods) == 0 {
		return ": no pod exists", nil
	}
	return "", nil
}

func podTrouble(p *corev1.Pod) string {
	for _, c := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		w := c.State.Waiting
		if w == nil || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
			continue
		}
		why := fmt.Sprintf("container %s: %s", c.Name, w.Reason)
		if last := c.LastTerminationState.Terminated; last != nil {
			return fmt.Sprintf("%s (exit code %d, %s)", why, last.ExitCode, cmp.Or(last.Message, last.Reason))
		}
		if w.Message != "" {
			why += " (" + w.Message + ")"
		}
		return why
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + " (" + c.Message + ")"
		}
	}
	return ""
}

// within returns r, or a failure if limit has passed between since and now. limit is shorter than the timeout of the
// check itself.
func within(limit time.Duration, since time.Time, now time.Time, r steps.Result) steps.Result {
	if since.IsZero() {
		return r
	}
	if due := since.Add(limit); now.Before(due) {
		r.Again = due
		return r
	}
	r.Status = steps.Fail
	r.Found = fmt.Sprintf("%s (for %s; the limit is %s)", r.Found, now.Sub(since).Round(time.Second), limit)
	return r
}
