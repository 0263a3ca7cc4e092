package stepstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reviewOther answers what somebody else may do, as RBAC judges it.
func (s *server) reviewOther(w http.ResponseWriter, r *http.Request, who person) {
	if !s.allows(who, &authorizationv1.ResourceAttributes{Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"}) {
		fail(w, 403, metav1.StatusReasonForbidden, fmt.Sprintf("subjectaccessreviews.authorization.k8s.io is forbidden: User %q cannot create resource \"subjectaccessreviews\"", who.name))
		return
	}
	var v authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	v.Status.Allowed = v.Spec.ResourceAttributes != nil && s.allows(person{v.Spec.User, v.Spec.Groups}, v.Spec.ResourceAttributes)
	reply(w, 201, v)
}

// proxied answers what stands behind a pod or a Service: the state's web section
// has it as "GET /proxy/NAMESPACE/services/NAME:PORT/path".
func (s *server) proxied(w http.ResponseWriter, r *http.Request, who person) {
	head, path, _ := strings.Cut(r.URL.Path, "/proxy/")
	a, _ := parsePath(head)
	a.Verb, a.Subresource = "get", "proxy"
	if !s.allows(who, a) {
		fail(w, 403, metav1.StatusReasonForbidden, fmt.Sprintf("%s is forbidden: User %q cannot get resource \"%s/proxy\"", a.Resource, who.name, a.Resource))
		return
	}
	for _, answer := range s.pages["GET /proxy/"+a.Namespace+"/"+a.Resource+"/"+a.Name+"/"+path] {
		answer.write(w)
		return
	}
	fail(w, 503, metav1.StatusReasonServiceUnavailable, fmt.Sprintf("no endpoints available for service %q", a.Name))
}

// levels of pod security, from open to narrow.
var levels = []string{"", "privileged", "baseline", "restricted"}

// tryPods judges a pod that nobody keeps by the level of its namespace, and a
// namespace by the pods in it, with the words of Kubernetes. Of the standards it
// knows what tells volumes apart (hostPath: privileged; nfs: baseline) and who
// sets neither capabilities nor privilege escalation
// (kubernetes/kubernetes: staging/src/k8s.io/pod-security-admission/policy).
func (s *server) tryPods(w http.ResponseWriter, r *http.Request, who person, a *authorizationv1.ResourceAttributes) {
	for _, verb := range []string{"create", "patch"} {
		if a.Verb = verb; !s.allows(who, a) {
			fail(w, 403, metav1.StatusReasonForbidden, fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q", a.Resource, who.name, verb, a.Resource))
			return
		}
	}
	o := &unstructured.Unstructured{}
	if err := json.NewDecoder(r.Body).Decode(&o.Object); err != nil {
		fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if a.Resource == "namespaces" {
		level := o.GetLabels()["pod-security.kubernetes.io/enforce"]
		for _, pod := range s.objects {
			if bad := beyondLevel(pod, level); pod.GetKind() == "Pod" && pod.GetNamespace() == a.Name && bad != "" {
				w.Header().Add("Warning", fmt.Sprintf("299 - %q", fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level \"%s:latest\"", a.Name, level)))
				w.Header().Add("Warning", fmt.Sprintf("299 - %q", pod.GetName()+": "+bad))
			}
		}
		reply(w, 200, o.Object)
		return
	}
	for _, ns := range s.objects {
		level := ns.GetLabels()["pod-security.kubernetes.io/enforce"]
		if bad := beyondLevel(o, level); ns.GetKind() == "Namespace" && ns.GetName() == a.Namespace && bad != "" {
			fail(w, 403, metav1.StatusReasonForbidden, fmt.Sprintf("pods %q is forbidden: violates PodSecurity \"%s:latest\": %s", a.Name, level, bad))
			return
		}
	}
	reply(w, 201, o.Object)
}

// beyondLevel says what a level refuses of a pod; "": nothing.
func beyondLevel(o *unstructured.Unstructured, level string) string {
	var pod corev1.Pod
	if convert(o, &pod) != nil {
		return ""
	}
	at := 0
	for i, l := range levels {
		if l == level {
			at = i
		}
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.HostPath != nil && at >= 2:
			return fmt.Sprintf("hostPath volumes (volume %q)", v.Name)
		case v.NFS != nil && at >= 3:
			return fmt.Sprintf("restricted volume types (volume %q uses restricted volume type \"nfs\")", v.Name)
		}
	}
	for _, c := range pod.Spec.Containers {
		if at >= 3 && (c.SecurityContext == nil || c.SecurityContext.AllowPrivilegeEscalation == nil) {
			return fmt.Sprintf("allowPrivilegeEscalation != false (container %q must set securityContext.allowPrivilegeEscalation=false)", c.Name)
		}
	}
	return ""
}
