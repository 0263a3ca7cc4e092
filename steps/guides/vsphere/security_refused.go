package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// Parts of event messages about rejected pods. Each identifies the admission plugin that rejected
// the pod.
const (
	byPSP   = "unable to validate against any pod security policy"
	byLevel = "violates PodSecurity"
)

// owners maps the kinds of workloads that create pods to their resources.
var owners = map[string]schema.GroupVersionResource{
	"ReplicaSet":  {Group: "apps", Version: "v1", Resource: "replicasets"},
	"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"DaemonSet":   check.DaemonSets,
	"Job":         check.Jobs,
}

// refusedPods is a workload whose pods are rejected.
type refusedPods struct{ kind, namespace, name, why string }

func podsRefused(ctx context.Context, e steps.Env) steps.Result {
	spaces, err := profileSpaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	found, err := refusedIn(ctx, e, spaceNames(spaces))
	if err != nil {
		return steps.Errored(err)
	}
	if len(found) == 0 {
		return steps.Passed(
			"in %d profile namespaces, no event of the last hour reports rejected pods of a workload that still lacks pods",
			len(spaces),
		)
	}
	var names []string
	for _, r := range found {
		names = append(names, r.kind+" "+r.namespace+"/"+r.name)
	}
	r := found[0]
	fix := e.ApplyStep("security") + "; then, because the workload's controller retries less and less often: " +
		restartController(e, r)
	i := slices.IndexFunc(spaces, func(ns *corev1.Namespace) bool { return ns.Name == r.namespace })
	switch has := spaces[i].Labels[check.EnforceLabel]; {
	case !strings.Contains(r.why, byLevel) || has == "":
	case check.Narrowness(has) > check.Narrowness(level(e)):
		fix = relabel(e, r.namespace) + " && " + restartController(e, r)
	default:
		fix = "give its pods a securityContext, or set security.level to a less strict level: carrick " + e.LinkFile() +
			"; then: " + restartController(e, r)
	}
	return steps.Failed(fmt.Sprintf("workloads have rejected pods: %s (%s)", check.Some(names), r.why), fix)
}

// restartController returns the command that makes a workload's controller retry immediately.
func restartController(e steps.Env, r refusedPods) string {
	at := e.Kubectl() + " -n " + r.namespace + " "
	switch r.kind {
	case "StatefulSet", "DaemonSet":
		return at + "rollout restart " + strings.ToLower(r.kind) + " " + steps.Quoted(r.name)
	case "ReplicaSet":
		return at + "delete replicaset " + steps.Quoted(r.name) + "    # its Deployment recreates it"
	}
	return at + "describe " + strings.ToLower(r.kind) + " " + steps.Quoted(r.name)
}

// refusedIn returns the workloads in namespaces that still have too few pods after an event
// reported rejected pods. An event remains for an hour, even if the cause has been fixed.
func refusedIn(ctx context.Context, e steps.Env, namespaces []string) ([]refusedPods, error) {
	events, err := check.List[corev1.Event](
		ctx, e.Cluster, check.Events, "", cluster.Selector{Fields: "reason=FailedCreate"},
	)
	if err != nil {
		return nil, err
	}
	var told []refusedPods
	for _, ev := range events {
		o := ev.InvolvedObject
		if !slices.Contains(namespaces, ev.Namespace) || owners[o.Kind].Empty() || (!strings.Contains(ev.Message, byPSP) &&
			!strings.Contains(ev.Message, byLevel)) {
			continue
		}
		if !slices.ContainsFunc(
			told, func(r refusedPods) bool { return r.kind == o.Kind && r.namespace == ev.Namespace && r.name == o.Name },
		) {
			told = append(told, refusedPods{o.Kind, ev.Namespace, o.Name, whyRefused(ev.Message)})
		}
	}
	lacks := make([]bool, len(told))
	var looks []func() error
	for i, r := range told {
		looks = append(looks, func() error {
			o, err := e.Cluster.Get(ctx, owners[r.kind], r.namespace, r.name)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil {
				lacks[i] = lacksPods(o)
			}
			return err
		})
	}
	if err := check.Together(looks...); err != nil {
		return nil, err
	}
	var out []refusedPods
	for i, r := range told {
		if lacks[i] {
			out = append(out, r)
		}
	}
	return out, nil
}

// whyRefused returns the part of an event's message that explains the rejection.
func whyRefused(message string) string {
	message = clean.Text(message)
	for _, mark := range []string{byPSP, byLevel} {
		if i := strings.Index(message, mark); i >= 0 {
			return message[i:]
		}
	}
	return message
}

// lacksPods reports whether a workload has fewer pods than it requests.
func lacksPods(o *unstructured.Unstructured) bool {
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(o.Object, path...)
		return n
	}
	switch o.GetKind() {
	case "Job":
		return number("status", "active")+number("status", "succeeded")+number("status", "failed") == 0
	case "DaemonSet":
		return number("status", "currentNumberScheduled") < number("status", "desiredNumberScheduled")
	}
	want, set, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !set {
		want = 1
	}
	return number("status", "replicas") < want
}
