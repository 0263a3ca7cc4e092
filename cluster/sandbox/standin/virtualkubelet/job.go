package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	century   = int64(100 * 365 * 24 * 3600) // lifetime of tokens in seconds
	accountAt = "/var/run/secrets/kubernetes.io/serviceaccount"
	rootCA    = "kube-root-ca.crt"
	caKey     = "ca.crt"
	askWithin = 30 * time.Second
)

// refused is kubectl's error without a configuration and without a ServiceAccount.
const refused = "The connection to the server localhost:8080 was refused - did you specify the right host or port?\n"

// job is a pod that the plugin has accepted.
type job struct {
	cancel context.CancelFunc
	said   map[string]string // logs by container
}

func (p *Player) play(ctx context.Context, node string, by *run) error {
	pods, err := p.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return err
	}
	there := map[types.UID]bool{}
	var faults []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		there[pod.UID] = true
		switch {
		case pod.DeletionTimestamp != nil:
			if j := p.jobs[pod.UID]; j != nil {
				j.cancel()
			}
			zero := int64(0)
			err := p.client.CoreV1().Pods(pod.Namespace).Delete(
				ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &pod.UID}},
			)
			if !apierrors.IsNotFound(err) {
				faults = append(faults, err)
			}
		case p.jobs[pod.UID] == nil && pod.Status.Phase == corev1.PodPending:
			p.begin(pod, by)
		}
	}
	for uid, j := range p.jobs {
		if !there[uid] {
			j.cancel()
			delete(p.jobs, uid)
		}
	}
	return errors.Join(faults...)
}

// begin submits a pod to the plugin. It reads the job's objects from the cluster immediately and runs the job in the
// background.
func (p *Player) begin(pod *corev1.Pod, by *run) {
	ctx, cancel := context.WithTimeout(p.life, askWithin)
	j := &job{cancel: cancel, said: map[string]string{}}
	p.jobs[pod.UID] = j
	environment := by.config.environment()
	if environment == nil {
		by.say(
			"info",
			"InterLink configuration does not contains both KubernetesApiAddr and KubernetesApiPort, so no env var "+
				"KUBERNETES_SERVICE_HOST is set",
		)
	}
	files, fault := p.volumes(ctx, pod, by)
	if fault != nil {
		by.say("error", "%v", fault)
	}
	p.all.Add(1)
	go func() {
		defer p.all.Done()
		defer cancel()
		var err error
		if fault != nil {
			err = p.refuse(ctx, pod, fault)
		} else {
			end, said := p.execute(ctx, pod, environment, files)
			p.mu.Lock()
			maps.Copy(j.said, said)
			p.mu.Unlock()
			err = p.report(ctx, pod, end)
		}
		if err != nil && p.life.Err() == nil && ctx.Err() == nil {
			p.options.Plugin.Say("error", "status of pod %s/%s: %v", pod.Namespace, pod.Name, err)
		}
	}()
}

// volumes returns the files in the projected volumes where clients look for a ServiceAccount token. The pod fails if
// volumes returns an error.
func (p *Player) volumes(ctx context.Context, pod *corev1.Pod, by *run) (map[string]string, error) {
	files := map[string]string{}
	own, err := p.as(by)
	if err != nil || by.config.NoProjected {
		return files, err
	}
	for _, v := range pod.Spec.Volumes {
		if v.Projected == nil || !mounted(pod, v.Name) {
			continue
		}
		for _, s := range v.Projected.Sources {
			switch {
			case s.ServiceAccountToken != nil:
				files[s.ServiceAccountToken.Path] = mint(ctx, own, pod, by)
			case s.ConfigMap != nil:
				found, err := configMap(ctx, own, pod.Namespace, s.ConfigMap, by)
				if err != nil {
					return nil, err
				}
				maps.Copy(files, found)
			case s.DownwardAPI != nil:
				for _, item := range s.DownwardAPI.Items {
					if item.FieldRef != nil && item.FieldRef.FieldPath == "metadata.namespace" {
						files[item.Path] = pod.Namespace
					}
				}
			}
		}
	}
	return files, nil
}

func mounted(pod *corev1.Pod, volume string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(
			c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume && m.MountPath == accountAt },
		)
	})
}

// mint requests a token as upstream does: bound to the pod and valid for a hundred years, regardless of the pod's
// settings. It returns "" if the API server rejects the request.
func mint(ctx context.Context, own kubernetes.Interface, pod *corev1.Pod, by *run) string {
	seconds := century
	made, err := own.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(
		ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: &seconds,
				BoundObjectRef: &authenticationv1.BoundObjectReference{
					APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
				},
			},
		}, metav1.CreateOptions{},
	)
	if err != nil {
		by.say("error", "%s", fault("error during token request in RemoteExecution()", err))
		return ""
	}
	by.say("debug", "could get token %s", made.Status.Token)
	return made.Status.Token
}

// configMap returns the files in a projected ConfigMap. If the configuration contains a CA, the CA replaces all files
// in kube-root-ca.crt, and the ConfigMap is not read (pkg/virtualkubelet/execute.go,
// remoteExecutionHandleProjectedSource).
func configMap(
	ctx context.Context, own kubernetes.Interface, namespace string, source *corev1.ConfigMapProjection, by *run,
) (map[string]string, error) {
	items := source.Items
	var held map[string]string
	if source.Name == rootCA && by.config.CA != "" {
		if len(items) == 0 {
			items = []corev1.KeyToPath{{Key: caKey, Path: caKey}}
		}
		held = map[string]string{}
		for _, item := range items {
			held[item.Key] = by.config.CA
		}
	} else {
		if source.Name == rootCA {
			by.say("warning", "KubernetesApiCaCrt is not set: the CA of the cluster is used")
		}
		found, err := own.CoreV1().ConfigMaps(namespace).Get(ctx, source.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read ConfigMap %s: %w", source.Name, err)
		}
		if held = found.Data; len(items) == 0 {
			return held, nil
		}
	}
	files := map[string]string{}
	for _, item := range items {
		text, ok := held[item.Key]
		if !ok {
			return nil, fmt.Errorf("read ConfigMap %s: it has no key %s", source.Name, item.Key)
		}
		files[item.Path] = text
	}
	return files, nil
}

// execute runs a job's commands. It returns the logs and exit codes by container. The exit code of a container that
// keeps running is nil.
func (p *Player) execute(
	ctx context.Context, pod *corev1.Pod, environment []corev1.EnvVar, files map[string]string,
) (end []*int32, said map[string]string) {
	said = map[string]string{}
	exports, err := p.options.Plugin.Exports()
	if err != nil || !exports {
		files = nil
	}
	p.options.Plugin.Say(
		"info", "Submitting pod %s/%s, %d files of projected volumes", pod.Namespace, pod.Name, len(files),
	)
	for _, c := range pod.Spec.Containers {
		code := int32(0)
		text, ok := "", false
		switch words, asks := command(c); {
		case gone(c.Image):
			code, text, ok = 255, "FATAL:   Unable to handle docker://"+c.Image+
				" uri: while building SIF from layers: manifest unknown (stand-in: docker.io/bitnami no longer has images)\n", true
		case asks:
			code, text = p.ask(ctx, pod, words, environment, files)
			ok = true
		}
		if !ok {
			text = "stand-in: nothing runs in this job\n"
			ok = metav1.GetControllerOf(pod) != nil && metav1.GetControllerOf(pod).Kind == "Job"
		}
		said[c.Name] = text
		if !ok {
			end = append(end, nil)
			continue
		}
		end = append(end, &code)
	}
	return end, said
}

func (p *Player) report(ctx context.Context, pod *corev1.Pod, end []*int32) error {
	now, err := p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil || now.UID != pod.UID {
		return err
	}
	setStatus(&now.Status, pod.Spec.Containers, end)
	_, err = p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: manager})
	if err != nil {
		return fmt.Errorf("report the job's exit status: %w", err)
	}
	return nil
}

// setStatus sets the phase, the reason and the container statuses. When all containers have ended, the reason for a
// failed container becomes the reason of the pod and of all its containers (pkg/virtualkubelet/execute.go,
// checkPodsStatus).
func setStatus(s *corev1.PodStatus, containers []corev1.Container, end []*int32) {
	started := metav1.Now()
	s.StartTime, s.ContainerStatuses = &started, nil
	ready, failed := corev1.ConditionFalse, ""
	for i, c := range containers {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image}
		if end[i] == nil {
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
			status.Ready = true
			ready = corev1.ConditionTrue
		} else {
			reason := "Completed"
			if *end[i] != 0 {
				reason = fmt.Sprintf("Error: %d", *end[i])
				failed = reason
			}
			status.State.Terminated = &corev1.ContainerStateTerminated{
				ExitCode: *end[i], Reason: reason, StartedAt: started, FinishedAt: metav1.Now(),
			}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, status)
	}
	switch {
	case ready == corev1.ConditionTrue:
		s.Phase, s.Reason = corev1.PodRunning, "Running"
	case failed == "":
		s.Phase, s.Reason = corev1.PodSucceeded, "Completed"
	default:
		s.Phase, s.Reason = corev1.PodFailed, failed
		for i := range s.ContainerStatuses {
			s.ContainerStatuses[i].State.Terminated.Reason = failed
		}
	}
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	s.Conditions = append(
		s.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: started},
	)
}

// refuse sets the status of a pod that could not be submitted (pkg/virtualkubelet/virtualkubelet.go,
// handleRemoteExecutionFailure).
func (p *Player) refuse(ctx context.Context, pod *corev1.Pod, fault error) error {
	now, err := p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil || now.UID != pod.UID {
		return err
	}
	s := &now.Status
	s.Phase, s.Reason, s.Message, s.ContainerStatuses = corev1.PodFailed, "ProviderFailed", fault.Error(), nil
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(
			s.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: s.Reason, Message: s.Message},
			}},
		)
	}
	_, err = p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: manager})
	return err
}
