package stepstest

import (
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// dryRun judges a Service as an API server does that is to keep nothing: it
// says which node port is taken, and nothing of the range that ports are from
// (kubernetes/kubernetes: pkg/registry/core/service/portallocator/operation.go).
// Everything else is refused.
func (s *server) dryRun(w http.ResponseWriter, r *http.Request, who person) {
	a, single := parsePath(r.URL.Path)
	if single && r.URL.Query().Get("dryRun") == "All" && r.Method == http.MethodPatch && (a.Resource == "pods" || a.Resource == "namespaces") {
		s.tryPods(w, r, who, a)
		return
	}
	if r.URL.Query().Get("dryRun") != "All" || r.Method != http.MethodPatch || a.Resource != "services" || !single {
		fail(w, 405, metav1.StatusReasonMethodNotAllowed, "a state can't be written to")
		return
	}
	for _, verb := range []string{"create", "patch"} {
		if a.Verb = verb; !s.allows(who, a) {
			fail(w, 403, metav1.StatusReasonForbidden, fmt.Sprintf("services is forbidden: User %q cannot %s resource \"services\"", who.name, verb))
			return
		}
	}
	var asked corev1.Service
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	for _, p := range asked.Spec.Ports {
		if p.NodePort != 0 && s.nodePortTaken(p.NodePort) {
			fail(w, 422, metav1.StatusReasonInvalid, fmt.Sprintf("Service %q is invalid: spec.ports[0].nodePort: Invalid value: %d: provided port is already allocated", a.Name, p.NodePort))
			return
		}
	}
	reply(w, 201, asked)
}

// nodePortTaken tells whether a Service of the state has that port, or one that
// nobody sees any more: the annotation "leaked-node-port" of a Namespace.
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
