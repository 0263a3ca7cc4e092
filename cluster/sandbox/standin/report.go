package standin

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Report is the status of a pod whose containers are all in the same state.
type Report struct {
	Phase    corev1.PodPhase
	Started  bool // volumes are mounted (PodReadyToStartContainers); kwok ignores the pod while this is false
	Ready    bool
	State    corev1.ContainerState
	Last     corev1.ContainerState // last termination state
	Restarts int32
	Init     []corev1.ContainerStatus // init containers
}

// Creating returns the report for a pod that cannot start yet.
func Creating() Report {
	return Report{
		Phase: corev1.PodPending,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
	}
}

// Running returns the report for a running pod.
func Running(ready bool) Report {
	return Report{
		Phase: corev1.PodRunning, Started: true, Ready: ready,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}
}

// Ended returns the report for a pod whose program exited with code.
func Ended(code int32) Report {
	r := Report{
		Phase: corev1.PodSucceeded, Started: true,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed"}},
	}
	if code != 0 {
		r.Phase, r.State.Terminated.Reason = corev1.PodFailed, "Error"
	}
	return r
}

// Tell updates the pod's status if it differs from the report. It returns no error if the pod was deleted or has
// changed, because the caller's next pass retries.
func (r Report) Tell(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	now := pod.DeepCopy()
	r.into(now)
	if equality.Semantic.DeepEqual(timeless(pod), timeless(now)) {
		return nil
	}
	_, err := client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: "kubelet"})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (r Report) into(pod *corev1.Pod) {
	at := metav1.Now()
	s := &pod.Status
	s.Phase = r.Phase
	if s.StartTime == nil {
		s.StartTime = &at
	}
	condition(s, corev1.PodReadyToStartContainers, r.Started, at)
	condition(s, corev1.PodInitialized, r.Started, at)
	condition(s, corev1.ContainersReady, r.Ready, at)
	condition(s, corev1.PodReady, r.Ready, at)
	var all []corev1.ContainerStatus
	for _, c := range pod.Spec.Containers {
		one := corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: r.Ready, RestartCount: r.Restarts, State: *r.State.DeepCopy(),
			LastTerminationState: *r.Last.DeepCopy(),
		}
		if i := slices.IndexFunc(
			s.ContainerStatuses, func(was corev1.ContainerStatus) bool { return was.Name == c.Name },
		); i >= 0 {
			stamp(&one, s.ContainerStatuses[i].State, at)
		} else {
			stamp(&one, corev1.ContainerState{}, at)
		}
		started := one.State.Running != nil
		one.Started = &started
		all = append(all, one)
	}
	s.ContainerStatuses = all
	if r.Init != nil {
		s.InitContainerStatuses = r.Init
	}
}

// stamp sets the start and finish times in a container's state. They stay the same if the state is unchanged.
func stamp(one *corev1.ContainerStatus, was corev1.ContainerState, at metav1.Time) {
	switch now := &one.State; {
	case now.Running != nil && was.Running != nil && now.Running.StartedAt.IsZero():
		now.Running.StartedAt = was.Running.StartedAt
	case now.Running != nil && now.Running.StartedAt.IsZero():
		now.Running.StartedAt = at
	case now.Terminated != nil && now.Terminated.FinishedAt.IsZero():
		now.Terminated.StartedAt, now.Terminated.FinishedAt = at, at
		if was.Running != nil {
			now.Terminated.StartedAt = was.Running.StartedAt
		}
	}
}

func condition(s *corev1.PodStatus, kind corev1.PodConditionType, is bool, at metav1.Time) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	i := slices.IndexFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: at})
		return
	}
	if c := &s.Conditions[i]; c.Status != status {
		c.Status, c.LastTransitionTime = status, at
	}
}

// timeless returns a pod's status without the times in terminated states.
func timeless(pod *corev1.Pod) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	for i := range s.ContainerStatuses {
		if t := s.ContainerStatuses[i].State.Terminated; t != nil {
			t.StartedAt, t.FinishedAt = metav1.Time{}, metav1.Time{}
		}
	}
	return s
}

// Ready reports whether a pod is ready and not being deleted.
func Ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
