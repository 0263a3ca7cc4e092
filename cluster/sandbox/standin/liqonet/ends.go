package liqonet

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Modes of a gateway. A client connects to a server.
const (
	server = "server"
	client = "client"
)

// side contains what differs between GatewayServers and GatewayClients.
type side struct {
	mode     string
	resource resource
	kind     string // kind of the gateway resource
	child    string // kind of the child object in upstream
	ref      string // status field with the reference to the child object
	template resource
}

var (
	serverSide = side{
		server, gatewayServers, "GatewayServer", "WgGatewayServer", "serverRef", network1("wggatewayservertemplates"),
	}
	clientSide = side{
		client, gatewayClients, "GatewayClient", "WgGatewayClient", "clientRef", network1("wggatewayclienttemplates"),
	}
)

var secrets = resource{Version: "v1", Resource: "secrets"}

// end contains the fields of a GatewayServer or GatewayClient that this fake reads.
type end struct {
	side              side `json:"-"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Endpoint  endpoint                    `json:"endpoint"`
		MTU       int64                       `json:"mtu"`
		SecretRef corev1.LocalObjectReference `json:"secretRef"`
		Server    corev1.ObjectReference      `json:"serverTemplateRef"`
		Client    corev1.ObjectReference      `json:"clientTemplateRef"`
	} `json:"spec"`
	Status endStatus `json:"status"`
}

// endpoint is spec.endpoint. For a server, it contains the port and how it is exposed. For a client, it contains the
// address to connect to.
type endpoint struct {
	Port        int32    `json:"port"`
	ServiceType string   `json:"serviceType"`
	NodePort    int32    `json:"nodePort"`
	Balancer    string   `json:"loadBalancerIP"`
	Addresses   []string `json:"addresses"`
	Protocol    string   `json:"protocol"`
}

type endStatus struct {
	Server   *corev1.ObjectReference `json:"serverRef,omitempty"`
	Client   *corev1.ObjectReference `json:"clientRef,omitempty"`
	Secret   *corev1.ObjectReference `json:"secretRef,omitempty"`
	Endpoint *reached                `json:"endpoint,omitempty"`
	Internal *internal               `json:"internalEndpoint,omitempty"`
}

// reached is the address that clients connect to.
type reached struct {
	Addresses []string `json:"addresses,omitempty"`
	Port      int32    `json:"port,omitempty"`
	Protocol  string   `json:"protocol,omitempty"`
}

// internal is the address of a gateway's pod inside the cluster.
type internal struct {
	IP   string `json:"ip,omitempty"`
	Node string `json:"node,omitempty"`
}

// ends reconciles each gateway resource once. As in upstream, errors go to the controller manager's log.
func (p *Player) ends(ctx context.Context, site site, all *objects) error {
	var faults []error
	for i := range all.ends {
		e := &all.ends[i]
		if e.DeletionTimestamp != nil {
			continue
		}
		now := e.Status
		if err := p.reconcile(ctx, site, e, all, &now); err != nil {
			p.log.sayf("%s %s/%s: %v", e.side.kind, e.Namespace, e.Name, err)
		}
		if !reflect.DeepEqual(now, e.Status) {
			faults = append(faults, p.status(ctx, e.side.resource, e.Namespace, e.Name, now))
		}
	}
	return errors.Join(faults...)
}

// reconcile creates the objects of a gateway resource and sets its status, in upstream's order. Like upstream, it
// reads the Service's address before it creates any object, and fails if the Deployment exists without the Service. If
// the API server has rejected the Service because of its port, the Service is therefore never created.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/networking/external-network:
// server-operator/server_controller.go and client-operator/client_controller.go, then
// wireguard/wggatewayserver_controller.go (Reconcile) and its counterpart.
func (p *Player) reconcile(ctx context.Context, site site, e *end, all *objects, now *endStatus) error {
	if e.Labels[remoteID] == "" {
		return fmt.Errorf("missing label %s", remoteID)
	}
	if err := p.template(ctx, e, all); err != nil {
		return err
	}
	child := &corev1.ObjectReference{
		APIVersion: e.side.resource.GroupVersion().String(), Kind: e.side.child, Name: e.Name, Namespace: e.Namespace,
	}
	if e.side.mode == server {
		now.Server = child
	} else {
		now.Client = child
	}
	if err := p.found(ctx, e, all, now); err != nil {
		return err
	}
	name, err := p.secret(ctx, e, all, site.version)
	if err != nil {
		return err
	}
	now.Secret = &corev1.ObjectReference{Name: name, Namespace: e.Namespace}
	state := e.state(name, site.version, all)
	if p.made[e.UID] == state {
		return nil
	}
	for _, made := range e.objects(name, site.version) {
		if err := p.apply(ctx, made.resource, made.object); err != nil {
			return err
		}
	}
	p.made[e.UID] = state
	return nil
}

// state returns a fingerprint of the created objects and of everything that they depend on.
func (e *end) state(secret, version string, all *objects) string {
	state := fmt.Sprintf("%s %s %+v", secret, version, e.Spec)
	if d := find(all.deployments, e.Namespace, e.child()); d != nil {
		state += fmt.Sprint(" ", d.UID, d.Generation)
	}
	if s := find(all.services, e.Namespace, e.child()); s != nil {
		state += fmt.Sprintf(" %s %+v", s.UID, s.Spec)
	}
	return state
}

// template returns an error if the gateway resource's template cannot be used.
func (p *Player) template(ctx context.Context, e *end, all *objects) error {
	ref := e.Spec.Server
	if e.side.mode == client {
		ref = e.Spec.Client
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return err
	}
	if ref.Kind != e.side.child+"Template" || version != e.side.template.GroupVersion() {
		return fmt.Errorf("unable to get the template %s %s of %s", ref.Kind, ref.Name, ref.APIVersion)
	}
	if find(all.templates[e.side.mode], ref.Namespace, ref.Name) == nil {
		return fmt.Errorf("unable to get the template %s/%s: not found", ref.Namespace, ref.Name)
	}
	if e.side.mode == client && len(e.Spec.Endpoint.Addresses) == 0 {
		return errors.New("unable to render the template: the endpoint has no address")
	}
	return nil
}

// found sets the address in the status once the Deployment exists. The address remains when the Deployment is deleted.
//
// Source: liqotech/liqo v1.2.0,
// pkg/liqo-controller-manager/networking/external-network/wireguard/wggatewayserver_controller.go
// (handleEndpointStatus, handleInternalEndpointStatus) and ../server-operator/server_controller.go
// (EnsureGatewayServer copies the fields that are set in the child, and clears no field).
func (p *Player) found(ctx context.Context, e *end, all *objects, now *endStatus) error {
	if find(all.deployments, e.Namespace, e.child()) == nil {
		return nil
	}
	pod, notActive := active(all, e.Namespace)
	if e.side.mode == server {
		service := find(all.services, e.Namespace, e.child())
		if service == nil {
			return fmt.Errorf("the Service %s was not created", e.child())
		}
		at, err := p.reached(ctx, service, notActive)
		if err != nil {
			return err
		}
		now.Endpoint = at
	}
	if notActive == nil {
		now.Internal = &internal{IP: pod.Status.PodIP, Node: pod.Spec.NodeName}
	}
	return notActive
}

// reached returns the external address of a Service. For node ports and load balancers it is this machine's address,
// because the gateway listens on this machine. A node port requires an active gateway pod, because upstream uses the
// address of that pod's node. A load balancer without an address has only a port.
func (p *Player) reached(ctx context.Context, service *corev1.Service, notActive error) (*reached, error) {
	port := service.Spec.Ports[0]
	at := &reached{Port: port.Port, Protocol: string(port.Protocol)}
	switch service.Spec.Type {
	case corev1.ServiceTypeClusterIP:
		at.Addresses = service.Spec.ClusterIPs
	case corev1.ServiceTypeNodePort:
		if notActive != nil {
			return nil, notActive
		}
		at.Addresses, at.Port = []string{loopback}, port.NodePort
	case corev1.ServiceTypeLoadBalancer:
		if err := p.balance(ctx, service); err != nil {
			return nil, err
		}
		for _, way := range service.Status.LoadBalancer.Ingress {
			at.Addresses = append(at.Addresses, way.IP)
		}
	default:
		return nil, fmt.Errorf("service type %s is not supported", service.Spec.Type)
	}
	return at, nil
}

// balance assigns an address to a Service of type LoadBalancer.
func (p *Player) balance(ctx context.Context, service *corev1.Service) error {
	if p.options.NoAddress || len(service.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	mode := corev1.LoadBalancerIPModeVIP
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: loopback, IPMode: &mode}}
	_, err := p.client.CoreV1().Services(service.Namespace).UpdateStatus(
		ctx, service, metav1.UpdateOptions{FieldManager: manager},
	)
	return err
}
