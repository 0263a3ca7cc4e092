package standin

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Environment returns a container's environment as NAME=value strings. It resolves literal values and pod fields. It
// omits values from Secrets and ConfigMaps.
func Environment(pod *corev1.Pod, c corev1.Container) []string {
	all := map[string]string{"HOSTNAME": pod.Name, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, e := range c.Env {
		switch {
		case e.ValueFrom == nil:
			all[e.Name] = e.Value
		case e.ValueFrom.FieldRef != nil:
			all[e.Name] = field(pod, e.ValueFrom.FieldRef.FieldPath)
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+"="+all[name])
	}
	return out
}

// field resolves a fieldRef.
func field(pod *corev1.Pod, path string) string {
	return map[string]string{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID),
		"spec.nodeName": pod.Spec.NodeName, "spec.serviceAccountName": pod.Spec.ServiceAccountName,
		"status.podIP": pod.Status.PodIP, "status.hostIP": pod.Status.HostIP,
	}[path]
}
