package chart

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
)

var (
	pods   = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	events = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

// reasons returns why an object is not ready. The reasons come from the object's conditions and pods. If the object has
// no pods, the last Warning event is the reason. All reads are tracked, so that the caller runs again when a reason
// changes.
func reasons(ctx context.Context, c *cluster.Cluster, o *unstructured.Unstructured) []string {
	var out []string
	for _, cond := range conditions(o) {
		if text(cond, "type") == "ReplicaFailure" && text(cond, "status") == "True" {
			out = append(out, "pods cannot be created: "+text(cond, "message"))
		}
	}
	switch o.GetKind() {
	case "Pod":
		return podReasons(o)
	case "Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet":
	case "PersistentVolumeClaim":
		return lastWarning(ctx, c, o)
	default:
		return nil
	}
	want, found, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
	if !found || len(want) == 0 {
		return out
	}
	list, err := c.List(ctx, pods, o.GetNamespace(), cluster.Selector{Labels: labels.SelectorFromSet(want).String()})
	if err != nil {
		return append(out, "its pods cannot be read: "+failure.Explain(err))
	}
	for _, p := range list {
		for _, r := range podReasons(p) {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	if len(list) == 0 && len(out) == 0 {
		out = lastWarning(ctx, c, o)
	}
	const most = 3
	return out[:min(len(out), most)]
}

// lastWarning returns the message of the last Warning event of an object, or nil if there is none.
func lastWarning(ctx context.Context, c *cluster.Cluster, o *unstructured.Unstructured) []string {
	list, err := c.List(ctx, events, o.GetNamespace(), cluster.Selector{Fields: fields.Set{
		"involvedObject.kind": o.GetKind(), "involvedObject.name": o.GetName(), "type": "Warning",
	}.String()})
	if err != nil || len(list) == 0 {
		return nil // no event, or no permission to read events
	}
	last := slices.MaxFunc(list, func(a, b *unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	return []string{text(last.Object, "reason") + ": " + text(last.Object, "message")}
}

// podReasons returns why a pod is not running.
func podReasons(p *unstructured.Unstructured) []string {
	var out []string
	for _, c := range conditions(p) {
		if text(c, "type") == "PodScheduled" && text(c, "status") == "False" {
			out = append(out, fmt.Sprintf("pod %s cannot be scheduled: %s", p.GetName(), brief(text(c, "message"))))
		}
	}
	for _, key := range []string{"initContainerStatuses", "containerStatuses"} {
		list, _, _ := unstructured.NestedSlice(p.Object, "status", key)
		for _, item := range list {
			if s, ok := item.(map[string]any); ok {
				if why := containerReason(p, s); why != "" {
					out = append(out, why)
				}
			}
		}
	}
	return out
}

// brief removes the text about preemption from a scheduler message. The reasons come before this text.
func brief(message string) string {
	for _, from := range []string{" no new claims to deallocate", " preemption: "} {
		message, _, _ = strings.Cut(message, from)
	}
	return strings.TrimRight(message, " ,.")
}

// containerReason returns why a container is not running. It returns "" if the container is running or starting.
func containerReason(p *unstructured.Unstructured, s map[string]any) string {
	name := text(s, "name")
	waiting, _, _ := unstructured.NestedMap(s, "state", "waiting")
	switch reason := text(waiting, "reason"); reason {
	case "", "ContainerCreating", "PodInitializing":
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable":
		return fmt.Sprintf("image %s cannot be pulled (%s): %s", text(s, "image"), reason, text(waiting, "message"))
	case "CrashLoopBackOff":
		restarts, _, _ := unstructured.NestedInt64(s, "restartCount")
		code, _, _ := unstructured.NestedInt64(s, "lastState", "terminated", "exitCode")
		return fmt.Sprintf(
			"container %s crashes repeatedly (%d times, last exit code %d): kubectl -n %s logs %s -c %s --previous", name,
			restarts, code, p.GetNamespace(), p.GetName(), name,
		)
	default:
		return fmt.Sprintf("container %s cannot start (%s): %s", name, reason, text(waiting, "message"))
	}
	if code, found, _ := unstructured.NestedInt64(s, "state", "terminated", "exitCode"); found && code != 0 {
		return fmt.Sprintf(
			"container %s exited with code %d: kubectl -n %s logs %s -c %s", name, code, p.GetNamespace(), p.GetName(), name,
		)
	}
	return ""
}

func conditions(o *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var out []map[string]any
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			out = append(out, c)
		}
	}
	return out
}

// text returns a string field in a form that is safe to display.
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return clean.Text(s)
}
