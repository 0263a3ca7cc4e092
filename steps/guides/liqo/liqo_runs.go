package liqo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// Liqo's chart sets these labels on all of its objects (liqotech/liqo: deployments/liqo/templates/_helpers.tpl).
const (
	partOfLabel    = "app.kubernetes.io/part-of"
	componentLabel = "app.kubernetes.io/name"
)

type liqoWorkload struct {
	kind        string
	meta        metav1.ObjectMeta
	want, ready int32
	fresh       bool // the status is up to date with the spec
}

func (w liqoWorkload) String() string { return w.kind + " " + w.meta.Name }

type installation struct {
	namespace string
	prefix    string // prefix of the workloads' names, such as "liqo-"
	external  bool   // the controllers use an external IPAM server instead of the chart's own
	all       []liqoWorkload
	pods      []*corev1.Pod
}

// installed reads Liqo's workloads. It returns an AbsentError if the controller manager does not exist.
func installed(ctx context.Context, e steps.Env) (*installation, error) {
	manager, err := controllerManager(ctx, e)
	if err != nil {
		return nil, err
	}
	in := &installation{namespace: manager.Namespace, prefix: strings.TrimSuffix(manager.Name, "controller-manager")}
	var deployments []*appsv1.Deployment
	var sets []*appsv1.DaemonSet
	err = check.Together(
		func() (err error) {
			deployments, err = check.List[appsv1.Deployment](ctx, e.Cluster, check.Deployments, in.namespace, cluster.Selector{})
			return err
		},
		func() (err error) {
			sets, err = check.List[appsv1.DaemonSet](ctx, e.Cluster, check.DaemonSets, in.namespace, cluster.Selector{})
			return err
		},
		func() (err error) {
			in.pods, err = check.List[corev1.Pod](ctx, e.Cluster, check.Pods, in.namespace, cluster.Selector{})
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	of := manager.Labels[partOfLabel]
	for _, d := range deployments {
		if d.Labels[partOfLabel] != of {
			continue
		}
		want := int32(1)
		if d.Spec.Replicas != nil {
			want = *d.Spec.Replicas
		}
		in.all = append(
			in.all,
			liqoWorkload{
				"Deployment", d.ObjectMeta, want, min(d.Status.AvailableReplicas, d.Status.UpdatedReplicas),
				d.Status.ObservedGeneration >= d.Generation,
			},
		)
	}
	for _, d := range sets {
		if d.Labels[partOfLabel] == of {
			s := d.Status
			in.all = append(
				in.all,
				liqoWorkload{
					"DaemonSet", d.ObjectMeta, s.DesiredNumberScheduled, min(s.NumberReady, s.UpdatedNumberScheduled),
					s.ObservedGeneration >= d.Generation,
				},
			)
		}
	}
	in.external = externalAddresses(manager, in.prefix+"ipam.")
	return in, nil
}

// externalAddresses reports whether the controllers use an IPAM server other than the chart's own. own is the prefix of
// the address of the chart's own IPAM server.
func externalAddresses(manager *appsv1.Deployment, own string) bool {
	for _, c := range manager.Spec.Template.Spec.Containers {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			if at, ok := strings.CutPrefix(arg, "--ipam-server="); ok {
				return !strings.HasPrefix(at, own)
			}
		}
	}
	return false
}

// lacking lists the required workloads that do not exist.
func (in *installation) lacking(networking bool) []string {
	need := []string{"Deployment controller-manager", "Deployment crd-replicator", "Deployment webhook"}
	if networking {
		need = append(need, "DaemonSet fabric")
		if !in.external {
			need = append(need, "Deployment ipam")
		}
	}
	var out []string
	for _, n := range need {
		kind, name, _ := strings.Cut(n, " ")
		if !slices.ContainsFunc(
			in.all, func(w liqoWorkload) bool { return w.kind == kind && w.meta.Name == in.prefix+name },
		) {
			out = append(out, kind+" "+in.prefix+name)
		}
	}
	return out
}

// podsOf returns the pods of a workload. It compares the labels that the chart sets on workloads and their pods.
func (in *installation) podsOf(w liqoWorkload) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range in.pods {
		if p.Labels[componentLabel] == w.meta.Labels[componentLabel] && p.Labels[partOfLabel] == w.meta.Labels[partOfLabel] {
			out = append(out, p)
		}
	}
	return out
}

// unready explains why a workload is not ready, and since when. If stuck is true, waiting will not help.
type unready struct {
	words, pod string
	since      time.Time
	stuck      bool
}

// judge returns why a workload is not ready, or nil if it is ready.
func (in *installation) judge(w liqoWorkload) *unready {
	if w.want == 0 && w.kind == "Deployment" {
		return &unready{words: w.String() + " is scaled to 0", stuck: true}
	}
	if w.fresh && w.ready >= w.want {
		return nil
	}
	out := &unready{
		words: fmt.Sprintf("%s has %d of %d pods ready", w, w.ready, w.want), since: w.meta.CreationTimestamp.Time,
	}
	for _, p := range in.podsOf(w) {
		why, since, stuck := unreadyPod(p)
		if why == "" || (out.pod != "" && !stuck) {
			continue
		}
		out.words = fmt.Sprintf("%s has %d of %d pods ready: pod %s %s", w, w.ready, w.want, p.Name, why)
		out.pod, out.since, out.stuck = p.Name, since, stuck
		if stuck {
			break
		}
	}
	return out
}

// stuckReasons lists the waiting reasons of containers that usually need a manual fix.
var stuckReasons = []string{
	"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

// unreadyPod explains why a pod is not ready, and since when. If stuck is true, waiting will not help. If the pod is
// ready or has succeeded, why is "".
func unreadyPod(p *corev1.Pod) (why string, since time.Time, stuck bool) {
	since = p.CreationTimestamp.Time
	if p.Status.Phase == corev1.PodSucceeded {
		return "", since, false
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return "", since, false
		case c.Type == corev1.PodReady && !c.LastTransitionTime.IsZero():
			since = c.LastTransitionTime.Time
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			return "cannot be scheduled: " + clean.Text(cmp.Or(c.Message, c.Reason)), since, true
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && w.Reason != "" {
			why := "is waiting: " + clean.Text(w.Reason)
			if last := s.LastTerminationState.Terminated; last != nil {
				why += fmt.Sprintf(
					" (last exit code %d, %s)", last.ExitCode, clean.Text(cmp.Or(last.Reason, "no reason given")),
				)
			} else if w.Message != "" {
				why += " (" + clean.Text(w.Message) + ")"
			}
			return why, since, slices.Contains(stuckReasons, w.Reason)
		}
	}
	return "is not ready (" + string(p.Status.Phase) + ")", since, p.Status.Phase == corev1.PodFailed
}

func liqoRuns(ctx context.Context, e steps.Env) steps.Result {
	if _, err := liqoSpace(e); steps.IsAbsent(err) {
		return steps.Skipped("Liqo's namespace is not known: %s", err)
	}
	in, err := installed(ctx, e)
	if steps.IsAbsent(err) {
		return steps.Failed(
			err.Error(),
			e.Kubectl()+
				" get deployments -A | grep -i liqo    # Liqo's kinds exist, but its controllers do not: reinstall Liqo on the "+
				e.SideName()+": "+liqoInstallPage,
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	show := e.Kubectl() + " -n " + in.namespace
	if lacking := in.lacking(joins(e)); len(lacking) > 0 {
		return steps.Failed(fmt.Sprintf("namespace %s has no %s", in.namespace, strings.Join(lacking, ", no ")),
			chartAgain(ctx, e)+"    # the chart contains the missing objects")
	}
	var words []string
	var first *unready
	stuck, since := false, time.Now()
	for _, w := range in.all {
		bad := in.judge(w)
		if bad == nil {
			continue
		}
		words = append(words, bad.words)
		stuck = stuck || bad.stuck
		if bad.since.Before(since) {
			since = bad.since
		}
		if first == nil || (bad.stuck && !first.stuck) {
			first = bad
		}
	}
	if first == nil {
		return steps.Passed("%d workloads in namespace %s are ready", len(in.all), in.namespace)
	}
	fix := show + " get deployments,daemonsets,pods"
	if first.pod != "" {
		fix = show + " describe pod " + first.pod + "    # and its log: " + show + " logs " + first.pod + " --all-containers"
	} else if name, ok := strings.CutSuffix(strings.TrimPrefix(first.words, "Deployment "), " is scaled to 0"); ok {
		fix = show + " scale deployment " + name + " --replicas 1"
	}
	if stuck {
		return steps.Failed(some(words), fix)
	}
	return steps.Waits(since, "%s", some(words)).Or(fix)
}
