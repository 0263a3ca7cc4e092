package stepstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// tried lists the resources that support dry runs without a merger.
var tried = []string{"services", "pods", "namespaces", "persistentvolumeclaims", "secrets", "amaltheasessions"}

// dryRun answers a dry run as an API server does. It applies the user's permissions, then the state's admission
// section, then the rules of the object's kind. It rejects kinds that are not in tried. With a merger, it also accepts
// existing objects of any kind and merges the request into them.
func (s *server) dryRun(w http.ResponseWriter, r *http.Request, who person) {
	a, single := parsePath(r.URL.Path)
	var live *unstructured.Unstructured
	if s.merger != nil && single {
		live = s.find(a)
	}
	if r.URL.Query().Get("dryRun") != "All" || r.Method != http.MethodPatch || !single ||
		live == nil && !slices.Contains(tried, a.Resource) {
		fail(w, 405, metav1.StatusReasonMethodNotAllowed, "a state is read-only")
		return
	}
	for _, verb := range []string{"create", "patch"} {
		if a.Verb = verb; !s.allows(who, a) {
			fail(
				w, 403, metav1.StatusReasonForbidden,
				fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q", a.Resource, who.name, verb, a.Resource),
			)
			return
		}
	}
	var asked map[string]any
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	rules, ok := s.admission, true
	if live != nil {
		rules = s.refusals // the state's admission rules are only for objects that checks create
		if asked, ok = s.mergedDryRun(w, r, live, asked); !ok {
			return
		}
	}
	if asked, ok = admit(w, rules, a.Resource, a.Namespace, a.Name, asked); !ok {
		return
	}
	object := &unstructured.Unstructured{Object: asked}
	switch a.Resource {
	case "pods":
		s.tryPod(w, object)
	case "namespaces":
		s.tryNamespace(w, object)
	case "services":
		s.tryService(w, object)
	default:
		if a.Namespace != "" && !s.has("Namespace", a.Namespace) {
			fail(w, 404, metav1.StatusReasonNotFound, fmt.Sprintf("namespaces %q not found", a.Namespace))
			return
		}
		reply(w, 201, object.Object)
	}
}

func (s *server) has(kind, name string) bool {
	return slices.ContainsFunc(
		s.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name },
	)
}

// tryService reports which node port is in use. It does not check the port range (kubernetes/kubernetes:
// pkg/registry/core/service/portallocator/operation.go).
func (s *server) tryService(w http.ResponseWriter, o *unstructured.Unstructured) {
	var asked corev1.Service
	if err := convert(o, &asked); err != nil {
		fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	for _, p := range asked.Spec.Ports {
		if p.NodePort != 0 && s.nodePortTaken(p.NodePort) {
			fail(
				w, 422, metav1.StatusReasonInvalid,
				fmt.Sprintf(
					"Service %q is invalid: spec.ports[0].nodePort: Invalid value: %d: provided port is already allocated",
					o.GetName(), p.NodePort,
				),
			)
			return
		}
	}
	reply(w, 201, o.Object)
}

// nodePortTaken reports whether a Service of the state uses the port, or the annotation "leaked-node-port" of an object
// names the port.
func (s *server) nodePortTaken(port int32) bool {
	for _, o := range s.objects {
		if o.GetAnnotations()["leaked-node-port"] == fmt.Sprint(port) {
			return true
		}
		if o.GetKind() == "Service" && hasNodePort(o, port) {
			return true
		}
	}
	return false
}

func hasNodePort(o *unstructured.Unstructured, port int32) bool {
	var s corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s); err != nil {
		return false
	}
	for _, p := range s.Spec.Ports {
		if p.NodePort == port {
			return true
		}
	}
	return false
}
