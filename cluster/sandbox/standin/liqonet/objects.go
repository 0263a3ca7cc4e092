package liqonet

import (
	"cmp"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Labels of gateway pods.
const (
	componentL = "networking.liqo.io/component"
	nameL      = "networking.liqo.io/gateway-name"
	component  = "gateway"
)

const (
	wireguardName = "wireguard" // name of the container with the tunnel
	mark          = "carrick/stand-in"
	defaultMTU    = 1340 // default (liqotech/liqo v1.2.0, pkg/liqo-controller-manager/networking/forge/common.go)
)

// made is an object to create.
type made struct {
	resource resource
	object   any
}

// child returns the name that all objects of a gateway resource have in common.
func (e *end) child() string { return "gw-" + e.Name }

func (e *end) reference() corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: e.side.resource.GroupVersion().String(), Kind: e.side.kind,
		Namespace: e.Namespace, Name: e.Name, UID: e.UID,
	}
}

// meta returns the metadata that all objects of a gateway resource have in common.
func (e *end) meta() metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		Name: e.child(), Namespace: e.Namespace, Labels: e.labels(),
		Annotations: map[string]string{mark: "created by the sandbox instead of Liqo's controllers"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: e.side.resource.GroupVersion().String(), Kind: e.side.kind,
			Name: e.Name, UID: e.UID, Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}
}

func (e *end) labels() map[string]string {
	return map[string]string{componentL: component, nameL: e.Name, remoteID: e.Labels[remoteID]}
}

// objects returns the objects of a gateway resource in the order of creation.
func (e *end) objects(secret, version string) []made {
	account := &corev1.ServiceAccount{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: e.meta(),
	}
	all := []made{
		{resource{Version: "v1", Resource: "serviceaccounts"}, account},
		{resource{Group: "apps", Version: "v1", Resource: "deployments"}, e.deployment(secret, version)},
	}
	if e.side.mode == server {
		all = append(all, made{resource{Version: "v1", Resource: "services"}, e.service()})
	}
	return all
}

// port returns the port in the spec. The port has no default, and the API server rejects a Service with port 0.
func (e *end) port() int32 { return e.Spec.Endpoint.Port }

func (e *end) service() *corev1.Service {
	port := corev1.ServicePort{Protocol: corev1.ProtocolUDP, Port: e.port(), TargetPort: intstr.FromInt32(e.port())}
	kind := corev1.ServiceType(e.Spec.Endpoint.ServiceType)
	if kind == corev1.ServiceTypeNodePort || kind == corev1.ServiceTypeLoadBalancer {
		port.NodePort = e.Spec.Endpoint.NodePort
	}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: e.meta(),
		Spec: corev1.ServiceSpec{
			Type: kind, Selector: e.labels(), Ports: []corev1.ServicePort{port}, LoadBalancerIP: e.Spec.Endpoint.Balancer,
		},
	}
}

// deployment returns the gateway's Deployment with the containers in the chart's template. The restricted Pod Security
// Standard forbids all of these containers, because they are privileged or add capabilities.
//
// Source: liqotech/liqo v1.2.0, deployments/liqo/templates/liqo-wireguard-gateway-server-template.yaml and its
// counterpart.
func (e *end) deployment(secret, version string) *appsv1.Deployment {
	one, yes := int32(1), true
	net := &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}}}
	all := net.DeepCopy()
	all.Privileged = &yes
	keys := corev1.Volume{Name: "wireguard-config"}
	keys.Secret = &corev1.SecretVolumeSource{SecretName: secret}
	image := "ghcr.io/liqotech/gateway"
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: e.meta(),
		Spec: appsv1.DeploymentSpec{
			Replicas: &one,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: e.labels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: e.labels()},
				Spec: corev1.PodSpec{
					ServiceAccountName: e.child(),
					Containers: []corev1.Container{
						{Name: "gateway", Image: image + ":" + version, Args: e.arguments("gateway"), SecurityContext: all},
						{
							Name: wireguardName, Image: image + "/wireguard:" + version, Args: e.wireguard(), SecurityContext: net,
							VolumeMounts: []corev1.VolumeMount{{Name: keys.Name, MountPath: "/etc/wireguard/keys"}},
						},
						{Name: "geneve", Image: image + "/geneve:" + version, Args: e.arguments("geneve"), SecurityContext: net},
					},
					Volumes: []corev1.Volume{keys},
				},
			},
		},
	}
}

// arguments returns the arguments that all containers of a gateway have in common.
func (e *end) arguments(container string) []string {
	return []string{
		"--name=" + e.Name, "--namespace=" + e.Namespace, "--remote-cluster-id=" + e.Labels[remoteID],
		"--gateway-uid=" + string(e.UID), "--mode=" + e.side.mode, "--container-name=" + container,
	}
}

// wireguard returns the arguments of the container wireguard. A server gets the port to listen on, and a client the
// address to connect to.
func (e *end) wireguard() []string {
	all := append(e.arguments(wireguardName), fmt.Sprintf("--mtu=%d", cmp.Or(e.Spec.MTU, defaultMTU)))
	if e.side.mode == server {
		return append(all, fmt.Sprintf("--listen-port=%d", e.port()))
	}
	return append(all, "--endpoint-address="+e.Spec.Endpoint.Addresses[0], fmt.Sprintf("--endpoint-port=%d", e.port()))
}

// flag returns the value of a flag in arguments, or "" if it is not set.
func flag(arguments []string, name string) string {
	for _, a := range arguments {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}
