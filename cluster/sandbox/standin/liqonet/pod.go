package liqonet

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errCrash means that upstream's container would have exited.
var errCrash = errors.New("the container has exited")

const crashLoop = "CrashLoopBackOff"

// active returns the gateway pod in a tenant namespace. It must be running, but need not be ready. As in upstream, more
// than one gateway pod is an error.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/networking/external-network/wireguard/utils.go
// (listActiveGatewayPod). listActiveGatewayPod selects pods by a label that the chart's pod template sets if there is
// one replica (deployments/liqo/templates/_helpers.tpl, liqo.labelsTemplate).
func active(all *objects, namespace string) (*corev1.Pod, error) {
	var found []*corev1.Pod
	for i := range all.pods {
		if pod := &all.pods[i]; pod.Namespace == namespace && pod.DeletionTimestamp == nil {
			found = append(found, pod)
		}
	}
	gateways := 0 // a gateway might not have a pod yet
	for i := range all.deployments {
		if all.deployments[i].Namespace == namespace {
			gateways++
		}
	}
	switch {
	case len(found) > 0 && max(len(found), gateways) > 1:
		return nil, fmt.Errorf("multiple (%d) active gateway pods found", max(len(found), gateways))
	case len(found) == 0 || found[0].Status.Phase != corev1.PodRunning:
		return nil, errors.New("no active gateway pods found")
	}
	return found[0], nil
}

func isTrue(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// crash sets the pod's container to CrashLoopBackOff.
func (p *Player) crash(ctx context.Context, g *gateway, pod *corev1.Pod, why error) error {
	g.close()
	g.log.sayf("%v", why)
	if !isTrue(pod, corev1.PodReady) {
		return nil
	}
	g.crashes++
	return p.shows(ctx, pod, corev1.ConditionFalse, func(s *corev1.ContainerStatus) {
		s.RestartCount += g.crashes
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", FinishedAt: metav1.Now(),
		}
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: crashLoop, Message: "back-off restarting failed container " + wireguardName + " (stand-in)",
		}}
	})
}

// recover sets the pod's container to running after a crash.
func (p *Player) recover(ctx context.Context, pod *corev1.Pod) error {
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Waiting != nil && s.State.Waiting.Reason == crashLoop {
			return p.shows(ctx, pod, corev1.ConditionTrue, func(s *corev1.ContainerStatus) {
				s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
			})
		}
	}
	return nil
}

// shows updates the status of the container wireguard and the readiness of its pod.
func (p *Player) shows(
	ctx context.Context, pod *corev1.Pod, ready corev1.ConditionStatus, change func(*corev1.ContainerStatus),
) error {
	now := pod.DeepCopy()
	for i := range now.Status.ContainerStatuses {
		if s := &now.Status.ContainerStatuses[i]; s.Name == wireguardName {
			s.Ready = ready == corev1.ConditionTrue
			change(s)
		}
	}
	for i := range now.Status.Conditions {
		if c := &now.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.LastTransitionTime = ready, metav1.Now()
		}
	}
	_, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: manager})
	return err
}
