package stepstest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reviewOther answers a SubjectAccessReview about another user, as RBAC does.
func (s *server) reviewOther(w http.ResponseWriter, r *http.Request, who person) {
	if !s.allows(
		who,
		&authorizationv1.ResourceAttributes{
			Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews",
		},
	) {
		fail(
			w, 403, metav1.StatusReasonForbidden,
			fmt.Sprintf(
				"subjectaccessreviews.authorization.k8s.io is forbidden: User %q cannot create resource \"subjectaccessreviews\"",
				who.name,
			),
		)
		return
	}
	var v authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	v.Status.Allowed = v.Spec.ResourceAttributes != nil &&
		s.allows(person{v.Spec.User, v.Spec.Groups}, v.Spec.ResourceAttributes)
	reply(w, 201, v)
}

// proxied answers a request through the proxy of a pod or a Service. The state's web section contains such answers
// under "GET /proxy/NAMESPACE/services/NAME:PORT/path".
func (s *server) proxied(w http.ResponseWriter, r *http.Request, who person) {
	head, path, _ := strings.Cut(r.URL.Path, "/proxy/")
	a, _ := parsePath(head)
	a.Verb, a.Subresource = "get", "proxy"
	if !s.allows(who, a) {
		fail(
			w, 403, metav1.StatusReasonForbidden,
			fmt.Sprintf("%s is forbidden: User %q cannot get resource \"%s/proxy\"", a.Resource, who.name, a.Resource),
		)
		return
	}
	for _, answer := range s.pages["GET /proxy/"+a.Namespace+"/"+a.Resource+"/"+a.Name+"/"+path] {
		answer.write(w)
		return
	}
	fail(w, 503, metav1.StatusReasonServiceUnavailable, fmt.Sprintf("no endpoints available for service %q", a.Name))
}

const enforce = "pod-security.kubernetes.io/enforce"

// levels lists the Pod Security levels from least to most restrictive.
var levels = []string{"", "privileged", "baseline", "restricted"}

// tryNamespace reports which existing pods of a namespace violate its Pod Security level. tryPod does the same for one
// pod. Both use Kubernetes' messages. They implement only a part of the Pod Security Standards. This part covers volume
// types (hostPath requires privileged, nfs baseline), added capabilities, and privilege escalation
// (kubernetes/kubernetes: staging/src/k8s.io/pod-security-admission/policy).
func (s *server) tryNamespace(w http.ResponseWriter, o *unstructured.Unstructured) {
	level := o.GetLabels()[enforce]
	for _, pod := range s.objects {
		if bad := beyondLevel(pod, level); pod.GetKind() == "Pod" && pod.GetNamespace() == o.GetName() && bad != "" {
			w.Header().Add(
				"Warning",
				fmt.Sprintf(
					"299 - %q",
					fmt.Sprintf(
						"existing pods in namespace %q violate the new PodSecurity enforce level \"%s:latest\"", o.GetName(), level,
					),
				),
			)
			w.Header().Add("Warning", fmt.Sprintf("299 - %q", pod.GetName()+": "+bad))
		}
	}
	reply(w, 200, o.Object)
}

func (s *server) tryPod(w http.ResponseWriter, o *unstructured.Unstructured) {
	for _, ns := range s.objects {
		level := cmp.Or(ns.GetLabels()[enforce], s.level)
		if bad := beyondLevel(o, level); ns.GetKind() == "Namespace" && ns.GetName() == o.GetNamespace() && bad != "" {
			fail(
				w, 403, metav1.StatusReasonForbidden,
				fmt.Sprintf("pods %q is forbidden: violates PodSecurity \"%s:latest\": %s", o.GetName(), level, bad),
			)
			return
		}
	}
	reply(w, 201, o.Object)
}

// beyondLevel returns what a Pod Security level rejects in a pod, or "".
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
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if s := c.SecurityContext; at >= 2 && s != nil && s.Capabilities != nil && len(s.Capabilities.Add) > 0 {
			return fmt.Sprintf(
				"non-default capabilities (container %q must not include %q in securityContext.capabilities.add)", c.Name,
				s.Capabilities.Add,
			)
		}
		if at >= 3 && (c.SecurityContext == nil || c.SecurityContext.AllowPrivilegeEscalation == nil) {
			return fmt.Sprintf(
				"allowPrivilegeEscalation != false (container %q must set securityContext.allowPrivilegeEscalation=false)", c.Name,
			)
		}
	}
	return ""
}
