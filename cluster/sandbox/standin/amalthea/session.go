package amalthea

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Values of status.state.
const (
	running    = "Running"
	notReady   = "NotReady"
	hibernated = "Hibernated"
	failed     = "Failed"
)

// Ports and names in a session's Service and pod.
const (
	sessionPort int32 = 8000  // upstream's default
	authPort    int32 = 65535 // port of the authentication proxy
	metaPort    int32 = 65534
	servicePort       = "amalthea-http"
	volumeName        = "amalthea-volume"
	userID      int64 = 1000 // default user and group ID
)

// session contains the fields of an AmaltheaSession that this fake reads.
type session struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Hibernated         bool                `json:"hibernated"`
		PriorityClassName  string              `json:"priorityClassName"`
		ServiceAccountName string              `json:"serviceAccountName"`
		NodeSelector       map[string]string   `json:"nodeSelector"`
		Affinity           *corev1.Affinity    `json:"affinity"`
		Tolerations        []corev1.Toleration `json:"tolerations"`
		ExtraVolumes       []corev1.Volume     `json:"extraVolumes"`
		Session            struct {
			Image     string                      `json:"image"`
			Port      int32                       `json:"port"`
			User      *int64                      `json:"runAsUser"`
			Group     *int64                      `json:"runAsGroup"`
			Command   []string                    `json:"command"`
			Args      []string                    `json:"args"`
			Env       []corev1.EnvVar             `json:"env"`
			URLPath   string                      `json:"urlPath"`
			Resources corev1.ResourceRequirements `json:"resources"`
			Storage   struct {
				ClassName *string            `json:"className"`
				MountPath string             `json:"mountPath"`
				Size      *resource.Quantity `json:"size"`
			} `json:"storage"`
		} `json:"session"`
		Ingress        *ingress `json:"ingress"`
		Authentication *struct {
			Enabled *bool  `json:"enabled"` // nil means true
			Type    string `json:"type"`
		} `json:"authentication"`
	} `json:"spec"`
}

// ingress contains the fields of spec.ingress that this fake reads.
type ingress struct {
	Annotations      map[string]string `json:"annotations"`
	Host             string            `json:"host"`
	IngressClassName *string           `json:"ingressClassName"`
	PathPrefix       string            `json:"pathPrefix"`
	UseDefaultCert   bool              `json:"useDefaultClusterTLSCert"`
	AssumeHTTPS      bool              `json:"assumeHttps"`
	TLSSecret        *struct {
		Name string `json:"name"`
	} `json:"tlsSecret"`
}

// status contains the fields of a session's status that this fake writes.
type status struct {
	State           string  `json:"state"`
	URL             string  `json:"url,omitempty"`
	Error           string  `json:"error,omitempty"`
	ContainerCounts *counts `json:"containerCounts,omitempty"`
}

type counts struct {
	Ready int64 `json:"ready"`
	Total int64 `json:"total"`
}

// objects returns the objects that the session owns, in the order of creation.
func (s *session) objects(this installed) []runtime.Object {
	all := []runtime.Object{s.statefulSet(this), s.claim(), s.service()}
	if s.Spec.Ingress != nil {
		all = append(all, s.ingress())
	}
	return append(all, s.secret())
}

// meta returns the metadata that all objects of a session have in common.
func (s *session) meta() metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		Name: s.Name, Namespace: s.Namespace, Labels: s.labels(),
		Annotations: map[string]string{mark: "created by the sandbox instead of the session operator"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: sessions.GroupVersion().String(), Kind: "AmaltheaSession",
			Name: s.Name, UID: s.UID, Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}
}

func (s *session) labels() map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "AmaltheaSession",
		"app.kubernetes.io/instance":   s.Name,
		"app.kubernetes.io/part-of":    "amaltheasession-operator",
		"app.kubernetes.io/created-by": "controller-manager",
	}
}

func (s *session) claim() *corev1.PersistentVolumeClaim {
	size := resource.MustParse("1Gi")
	if given := s.Spec.Session.Storage.Size; given != nil {
		size = *given
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: s.meta(),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: s.Spec.Session.Storage.ClassName,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
}

// secret returns the Secret that upstream creates for a session without OIDC.
func (s *session) secret() *corev1.Secret {
	meta := s.meta()
	meta.Name += "---internal"
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta}
}

func (s *session) service() *corev1.Service {
	target := cmp.Or(s.Spec.Session.Port, sessionPort)
	if s.authenticates() {
		target = authPort
	}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: s.meta(),
		Spec: corev1.ServiceSpec{
			Selector: s.labels(),
			Ports: []corev1.ServicePort{
				{Name: servicePort, Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(target)},
				{Name: servicePort + "-meta", Protocol: corev1.ProtocolTCP, Port: metaPort, TargetPort: intstr.FromInt32(metaPort)},
			},
		},
	}
}

// authenticates reports whether a proxy in the session's pod authenticates users.
func (s *session) authenticates() bool {
	a := s.Spec.Authentication
	return a != nil && (a.Enabled == nil || *a.Enabled)
}

func (s *session) statefulSet(this installed) *appsv1.StatefulSet {
	replicas := int32(1)
	if s.Spec.Hibernated {
		replicas = 0
	}
	own := corev1.Volume{Name: volumeName}
	own.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.Name}
	group, no := cmp.Or(s.Spec.Session.Group, pointer(userID)), false
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: s.labels(), Annotations: map[string]string{mark: "nothing runs in this pod"}},
		Spec: corev1.PodSpec{
			PriorityClassName:            s.Spec.PriorityClassName,
			ServiceAccountName:           s.Spec.ServiceAccountName,
			AutomountServiceAccountToken: &no,
			EnableServiceLinks:           &no,
			SecurityContext:              &corev1.PodSecurityContext{FSGroup: group},
			NodeSelector:                 s.Spec.NodeSelector,
			Affinity:                     s.Spec.Affinity,
			Tolerations:                  s.Spec.Tolerations,
			Containers:                   append([]corev1.Container{s.container(group)}, s.proxies(this)...),
			Volumes:                      append([]corev1.Volume{own}, s.Spec.ExtraVolumes...),
		},
	}
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: s.meta(),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: s.labels()},
			Template: template,
		},
	}
}

// container returns the session's container. The restricted Pod Security Standard forbids it, because it sets neither
// a seccomp profile nor allowPrivilegeEscalation.
func (s *session) container(group *int64) corev1.Container {
	in := s.Spec.Session
	user := cmp.Or(in.User, pointer(userID))
	return corev1.Container{
		Name: "amalthea-session", Image: in.Image, Command: in.Command, Args: in.Args, Env: in.Env, Resources: in.Resources,
		VolumeMounts: []corev1.VolumeMount{{Name: volumeName, MountPath: cmp.Or(in.Storage.MountPath, "/workspace")}},
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: pointer(*user != 0), RunAsUser: user, RunAsGroup: group,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// proxies returns the containers that authenticate users.
func (s *session) proxies(this installed) []corev1.Container {
	if !s.authenticates() {
		return nil
	}
	proxy := func(name, image string) corev1.Container {
		return corev1.Container{
			Name: name, Image: image,
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("20m"), "memory": resource.MustParse("16Mi")},
				Limits:   corev1.ResourceList{"memory": resource.MustParse("32Mi")},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: pointer(false), RunAsNonRoot: pointer(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}
	}
	all := []corev1.Container{proxy("authproxy", this.sidecars)}
	if s.Spec.Authentication.Type != "token" {
		all = append(
			[]corev1.Container{proxy("oauth2-proxy", "harbor.renkulab.io/bitnami-mirror/oauth2-proxy:7.6.0")}, all...,
		)
	}
	return all
}

func pointer[T any](value T) *T { return &value }

// ingress returns the session's Ingress. It has TLS only if the session specifies a Secret or requests the default
// certificate. With the default certificate, the TLS section has neither a Secret nor a host.
func (s *session) ingress() *networkingv1.Ingress {
	in := s.Spec.Ingress
	prefix := networkingv1.PathTypePrefix
	meta := s.meta()
	for key, value := range in.Annotations {
		meta.Annotations[key] = value
	}
	made := &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
		ObjectMeta: meta,
		Spec: networkingv1.IngressSpec{
			IngressClassName: in.IngressClassName,
			Rules: []networkingv1.IngressRule{{
				Host: in.Host,
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
					Paths: []networkingv1.HTTPIngressPath{{
						Path: strings.TrimSuffix(in.PathPrefix, "/") + "/", PathType: &prefix,
						Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
							Name: s.Name, Port: networkingv1.ServiceBackendPort{Name: servicePort},
						}},
					}},
				}},
			}},
		},
	}
	switch {
	case in.TLSSecret != nil && in.TLSSecret.Name != "":
		made.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{in.Host}, SecretName: in.TLSSecret.Name}}
	case in.TLSSecret == nil && in.UseDefaultCert:
		made.Spec.TLS = []networkingv1.IngressTLS{{}}
	}
	return made
}

// fares returns the session's status. pod is nil if the pod does not exist.
func (s *session) fares(this installed, pod *corev1.Pod) status {
	now := status{State: notReady, URL: s.url(this), ContainerCounts: counted(pod)}
	if s.Spec.Hibernated {
		now.State, now.ContainerCounts.Ready = hibernated, 0
		return now
	}
	if pod == nil {
		return now
	}
	if why := failure(pod); why != "" {
		now.State, now.Error = failed, why
		return now
	}
	if ready(pod) {
		now.State = running
	}
	for _, c := range pod.Status.Conditions {
		if c.Reason == corev1.PodReasonUnschedulable {
			now.Error = fmt.Sprintf("the session cannot be scheduled: %s", c.Message)
		}
	}
	return now
}

// counted returns how many containers a pod has, and how many of them are running or have completed.
func counted(pod *corev1.Pod) *counts {
	all := &counts{}
	if pod == nil {
		return all
	}
	for _, c := range pod.Status.ContainerStatuses {
		all.Total++
		if c.Ready && c.State.Running != nil || c.State.Terminated != nil && c.State.Terminated.ExitCode == 0 {
			all.Ready++
		}
	}
	return all
}

// failure returns why a container in the pod has failed, or "" if none has.
func failure(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return ""
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waits, ended := c.State.Waiting, c.State.Terminated
		switch {
		case c.Ready && c.Started != nil && *c.Started:
		case waits != nil && waits.Reason != "ContainerCreating" && waits.Reason != "PodInitializing":
			return fmt.Sprintf("container %s does not start: %s: %s", c.Name, waits.Reason, waits.Message)
		case ended != nil && ended.ExitCode != 0:
			return fmt.Sprintf("container %s has terminated with an error: %s", c.Name, ended.Message)
		}
	}
	return ""
}

// url returns the session's URL. It uses https if the Ingress has TLS, or if the session or the operator requires
// https. The URL ends with a slash, even after a query.
func (s *session) url(this installed) string {
	in := s.Spec.Ingress
	if in == nil || in.Host == "" {
		return "None"
	}
	path := strings.TrimSuffix(s.Spec.Session.URLPath, "/") + "/"
	at, err := url.Parse(path)
	if err != nil {
		at = &url.URL{Path: path}
	}
	at.Scheme, at.Host = "http", in.Host
	if in.TLSSecret != nil && in.TLSSecret.Name != "" || in.UseDefaultCert || in.AssumeHTTPS || this.https {
		at.Scheme = "https"
	}
	return at.String()
}
