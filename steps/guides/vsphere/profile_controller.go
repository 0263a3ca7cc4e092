package vsphere

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// profileController is the Deployment of the profile controller (kubeflow/manifests: applications/profiles;
// kubeflow/dashboard: components/profile-controller/manifests/kustomize/base).
const profileController = "profiles-deployment"

// controllerState describes the Deployment of the profile controller and what prevents it from
// working.
type controllerState struct {
	*appsv1.Deployment           // nil: it does not exist or cannot be read
	down               string    // why new profiles get no namespace; "": it runs or does not exist
	since              time.Time // when its pods began to start; zero: they are not starting
	risk               string    // what will fail: new Profiles, or replacing a pod; "": nothing
	fix                string
}

// theController returns the state of the profile controller. One available replica is sufficient,
// because the other replicas only wait for the leader's lease.
func theController(ctx context.Context, e steps.Env) (controllerState, error) {
	at := e.Kubectl() + " -n " + kubeflowSpace + " "
	var d *appsv1.Deployment
	var hook failedWebhook
	var err, hookErr error
	_ = check.Together(
		func() error {
			d, err = check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, kubeflowSpace, profileController)
			return nil
		},
		func() error { hook, hookErr = webhookWithoutEndpoint(ctx, e); return nil },
	)
	if apierrors.IsNotFound(err) {
		return controllerState{fix: at + "get deployments,statefulsets    # find the profile controller"}, nil
	}
	logs := at + "logs deployment/" + profileController + " -c manager --tail=20"
	if apierrors.IsForbidden(err) {
		return controllerState{fix: logs}, nil
	}
	if err != nil {
		return controllerState{}, err
	}
	s := controllerState{Deployment: d, fix: logs}
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	switch {
	case want == 0:
		s.down = fmt.Sprintf("the profile controller %s/%s is scaled to 0 replicas", kubeflowSpace, d.Name)
		s.fix = check.ScaleUp(e, "deployment", kubeflowSpace, d.Name)
	case d.Status.AvailableReplicas == 0:
		s.down = fmt.Sprintf("0 of %d replicas of the profile controller %s/%s are available", want, kubeflowSpace, d.Name)
		s.since, s.fix = check.WaitsSince(d), at+"describe pods -l "+steps.Quoted(metav1.FormatLabelSelector(d.Spec.Selector))
		if why := clean.Text(check.ReplicaFailure(d)); why != "" {
			s.down, s.since = s.down+": "+why, time.Time{}
			if l, err := limitOf(ctx, e, kubeflowSpace, why); err == nil && l.fix != "" {
				s.fix = l.fix
			}
		}
	}
	if s.down != "" {
		return s, nil
	}
	switch {
	case hookErr != nil:
		return s, hookErr
	case hook.profiles:
		s.risk, s.fix = "new Profiles cannot be created: "+hook.found, hook.fix
		return s, nil
	case hook.found != "":
		s.down, s.fix = hook.found, hook.fix
		return s, nil
	}
	risk, fix, err := quotaRefusesNextPod(ctx, e, d)
	if risk != "" {
		s.risk, s.fix = risk, fix
	}
	return s, err
}

// controllerWithin is how long the profile controller can take to start, or to apply a change.
const controllerWithin = time.Minute

// lacking returns the verdict on an incomplete profile or namespace. found describes what the profile controller has
// not created or labelled yet. since is when the profile or the labels file was last changed.
func (s controllerState) lacking(since time.Time, found string) steps.Result {
	if s.down != "" && s.since.IsZero() {
		return steps.Failed(found+": "+s.down, s.fix).WithoutAction()
	}
	if s.down != "" {
		found += ": " + s.down
	}
	return steps.Waits(since, "%s", found).Or(s.fix)
}

// idle returns the verdict if the controller is down but all existing profiles are complete. found
// describes the existing profiles.
func (s controllerState) idle(found string) steps.Result {
	found = s.down + ". New profiles get no namespace; " + found
	if !s.since.IsZero() && time.Since(s.since) < controllerWithin {
		return steps.Waits(s.since, "%s", found).Or(s.fix)
	}
	return steps.Warned(found, s.fix).WithoutAction()
}
