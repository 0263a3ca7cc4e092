package renku

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

const dataServiceApp = "renku-data-service"

// watcherApp is the only service that loads the kubeconfigs at startup. The other services load
// them when they first access a cluster (renku-data-services components/renku_data_services/k8s).
const watcherApp = "renku-k8s-watcher"

// serviceApps lists the app labels of the Deployments that read the kubeconfigs, in display order
// (SwissDataScienceCenter/renku helm-chart/renku/templates).
var serviceApps = []string{dataServiceApp, watcherApp, "renku-data-tasks", "renku-secrets-storage"}

// service is one of Renku's services. Deployment is nil if no Deployment has the service's app
// label.
type service struct {
	app string
	*appsv1.Deployment
}

func (s service) name() string { return strings.TrimPrefix(s.app, "renku-") }

// anyService selects the Deployments and the pods of all services.
var anyService = cluster.Selector{Labels: "app in (" + strings.Join(serviceApps, ",") + ")"}

// serviceDeployments returns the services' Deployments in Renku's namespace. They can belong to
// several releases.
func serviceDeployments(ctx context.Context, e steps.Env) ([]*appsv1.Deployment, error) {
	return check.List[appsv1.Deployment](ctx, e.Cluster, check.Deployments, renkuNamespace(e), anyService)
}

// servicesOf returns the four services. If several Deployments match a service, it returns one
// entry for each Deployment.
func servicesOf(ctx context.Context, e steps.Env) ([]service, error) {
	var all []*appsv1.Deployment
	var release any // nil: unknown
	err := check.Together(
		func() (err error) { all, err = serviceDeployments(ctx, e); return err },
		func() error {
			if v, err := e.Own.Value("release"); err == nil {
				m, _ := v.(map[string]any)
				release = m["name"]
			}
			return nil
		},
	)
	if err != nil {
		return nil, err
	}
	var out []service
	for _, app := range serviceApps {
		before := len(out)
		for _, d := range all {
			if d.Labels["app"] == app && (release == nil || d.Labels["release"] == release) {
				out = append(out, service{app, d})
			}
		}
		if len(out) == before {
			out = append(out, service{app: app})
		}
	}
	return out, nil
}

func servicePods(ctx context.Context, e steps.Env) ([]*corev1.Pod, error) {
	return check.List[corev1.Pod](ctx, e.Cluster, check.Pods, renkuNamespace(e), anyService)
}

func servicesAndPods(ctx context.Context, e steps.Env) (found []service, pods []*corev1.Pod, err error) {
	err = check.Together(
		func() (err error) { found, err = servicesOf(ctx, e); return err },
		func() (err error) { pods, err = servicePods(ctx, e); return err },
	)
	return found, pods, err
}

// podsOf returns the pods of a Deployment, newest first. It omits pods that have ended or are being
// deleted.
func podsOf(d *appsv1.Deployment, of []*corev1.Pod) ([]*corev1.Pod, error) {
	selects, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read the selector of Deployment %s: %w", d.Name, err)
	}
	var pods []*corev1.Pod
	for _, p := range of {
		if selects.Matches(labels.Set(p.Labels)) && p.DeletionTimestamp == nil && !check.Ended(p) {
			pods = append(pods, p)
		}
	}
	slices.SortStableFunc(
		pods, func(a, b *corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) },
	)
	return pods, nil
}

// rolledOut reports whether all pods of a Deployment are available and run its newest template.
// If not, progress describes the state.
func rolledOut(d *appsv1.Deployment) (done bool, progress string) {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	st := d.Status
	switch {
	case st.ObservedGeneration < d.Generation:
		return false, "rollout not started yet"
	case st.UpdatedReplicas < want || st.AvailableReplicas < want:
		return false, fmt.Sprintf("%d of %d new pods ready", min(st.UpdatedReplicas, st.AvailableReplicas), want)
	case st.Replicas > st.UpdatedReplicas:
		return false, fmt.Sprintf(
			"%d of %d new pods ready, %s still running", st.UpdatedReplicas, want,
			steps.Plural(int(st.Replicas-st.UpdatedReplicas), "old pod"),
		)
	}
	return true, ""
}

// whyPodNotReady returns why a pod is not ready. It returns "" if the pod is ready or the reason
// is unknown.
func whyPodNotReady(ctx context.Context, c *cluster.Cluster, p *corev1.Pod) string {
	for _, cond := range p.Status.Conditions {
		switch {
		case cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue:
			return ""
		case cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse:
			return "not scheduled: " + cond.Message
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if said := containerTrouble(s); said != "" {
			return said
		}
	}
	return warning(ctx, c, p.Namespace, p.Name)
}

// warning returns the last Warning event for an object as a message. It returns "" if there is none
// or if events cannot be read.
func warning(ctx context.Context, c *cluster.Cluster, namespace, name string) string {
	said := ""
	list, err := check.List[corev1.Event](
		ctx, c, check.Events, namespace, cluster.Selector{Fields: "involvedObject.name=" + name + ",type=Warning"},
	)
	if err != nil {
		return "" // events are optional, so an error must not replace the verdict
	}
	slices.SortStableFunc(list, func(a, b *corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	for _, ev := range list {
		said = ev.Reason + ": " + ev.Message
	}
	return said
}

func containerTrouble(s corev1.ContainerStatus) string {
	w := s.State.Waiting
	switch {
	case w == nil:
		return ""
	case w.Reason == "CrashLoopBackOff":
		why := ""
		if t := s.LastTerminationState.Terminated; t != nil {
			why = fmt.Sprintf(" (exit code %d)", t.ExitCode)
		}
		return fmt.Sprintf("container %s is in CrashLoopBackOff%s", s.Name, why)
	case slices.Contains(pullFailures, w.Reason):
		return fmt.Sprintf("image %s cannot be pulled: %s", s.Image, w.Message)
	case w.Reason == "CreateContainerConfigError":
		return "container " + s.Name + " cannot be created: " + w.Message
	}
	return ""
}

// pullFailures lists the kubelet's reasons for an image that cannot be pulled.
var pullFailures = []string{
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable",
}
