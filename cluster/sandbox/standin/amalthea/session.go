package amalthea

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The states of a session that this stand-in knows.
const (
	running    = "Running"
	notReady   = "NotReady"
	hibernated = "Hibernated"
	failed     = "Failed"
)

// authPort is where a session's proxy listens; users come in here.
const authPort = 65535

// session is an AmaltheaSession, as far as it is read here.
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
			URLPath   string                      `json:"urlPath"`
			Resources corev1.ResourceRequirements `json:"resources"`
			Storage   struct {
				ClassName *string            `json:"className"`
				MountPath string             `json:"mountPath"`
				Size      *resource.Quantity `json:"size"`
			} `json:"storage"`
		} `json:"session"`
		Ingress *ingress `json:"ingress"`
	} `json:"spec"`
}

// ingress is spec.ingress.
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

// status is what this stand-in writes of a session's status.
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

// objects returns what the session needs, in the order of making.
func (s *session) objects() []runtime.Object {
	all := []runtime.Object{s.claim(), s.service(), s.statefulSet()}
	if s.Spec.Ingress != nil {
		all = append(all, s.ingress())
	}
	return all
}

// meta is what everything that a session owns carries.
func (s *session) meta() metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		Name: s.Name, Namespace: s.Namespace, Labels: s.labels(),
		Annotations: map[string]string{mark: "made in the place of the session operator"},
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

func (s *session) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: s.meta(),
		Spec: corev1.ServiceSpec{
			Selector: s.labels(),
			Ports:    []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(authPort)}},
		},
	}
}

func (s *session) statefulSet() *appsv1.StatefulSet {
	replicas := int32(1)
	if s.Spec.Hibernated {
		replicas = 0
	}
	const volume = "session"
	own := corev1.Volume{Name: volume}
	own.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.Name}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: s.labels(), Annotations: map[string]string{mark: "nothing runs in this pod"}},
		Spec: corev1.PodSpec{
			PriorityClassName:  s.Spec.PriorityClassName,
			ServiceAccountName: s.Spec.ServiceAccountName,
			NodeSelector:       s.Spec.NodeSelector,
			Affinity:           s.Spec.Affinity,
			Tolerations:        s.Spec.Tolerations,
			Containers: []corev1.Container{
				{
					Name: "amalthea-session", Image: s.Spec.Session.Image, Resources: s.Spec.Session.Resources,
					VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: cmp.Or(s.Spec.Session.Storage.MountPath, "/workspace")}},
				},
				{
					Name: "oauth2-proxy", Image: "harbor.renkulab.io/bitnami-mirror/oauth2-proxy:7.6.0",
					Ports:     []corev1.ContainerPort{{Name: "auth", ContainerPort: authPort, Protocol: corev1.ProtocolTCP}},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("20m"), "memory": resource.MustParse("16Mi")}},
				},
			},
			Volumes: append([]corev1.Volume{own}, s.Spec.ExtraVolumes...),
		},
	}
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: s.meta(),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: s.Name,
			Selector: &metav1.LabelSelector{MatchLabels: s.labels()},
			Template: template,
		},
	}
}

// ingress has TLS only where the session says with which certificate.
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
						Path: cmp.Or(in.PathPrefix, "/"), PathType: &prefix,
						Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
							Name: s.Name, Port: networkingv1.ServiceBackendPort{Name: "http"},
						}},
					}},
				}},
			}},
		},
	}
	switch {
	case in.TLSSecret != nil && in.TLSSecret.Name != "":
		made.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{in.Host}, SecretName: in.TLSSecret.Name}}
	case in.UseDefaultCert:
		made.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{in.Host}}}
	}
	return made
}

// fares returns the session's status; pod is nil where there is none.
func (s *session) fares(this installed, pod *corev1.Pod) status {
	now := status{State: notReady, URL: s.url(this), ContainerCounts: &counts{}}
	if s.Spec.Hibernated {
		now.State = hibernated
		return now
	}
	if pod == nil {
		return now
	}
	now.ContainerCounts.Total = int64(len(pod.Spec.Containers))
	if ready(pod) {
		now.State, now.ContainerCounts.Ready = running, now.ContainerCounts.Total
		return now
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			now.Error = fmt.Sprintf("the pod is not scheduled: %s", c.Message)
		}
	}
	return now
}

// url is https only where the Ingress has TLS, or somebody says so.
func (s *session) url(this installed) string {
	in := s.Spec.Ingress
	if in == nil {
		return ""
	}
	at := url.URL{Scheme: "http", Host: in.Host, Path: s.Spec.Session.URLPath}
	if len(s.ingress().Spec.TLS) > 0 || in.AssumeHTTPS || this.https {
		at.Scheme = "https"
	}
	if at.Path == "" || at.Path == "/" {
		at.Path = strings.TrimRight(in.PathPrefix, "/")
	}
	return at.String()
}
