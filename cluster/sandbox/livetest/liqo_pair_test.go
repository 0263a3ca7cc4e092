package livetest

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var (
	liqoNetworks  = schema.GroupVersionResource{Group: "ipam.liqo.io", Version: "v1alpha1", Resource: "networks"}
	pairResources = map[string]schema.GroupVersionResource{
		"Namespace":     {Version: "v1", Resource: "namespaces"},
		"Secret":        {Version: "v1", Resource: "secrets"},
		"Configuration": {Group: "networking.liqo.io", Version: "v1beta1", Resource: "configurations"},
		"PublicKey":     {Group: "networking.liqo.io", Version: "v1beta1", Resource: "publickeies"},
		"GatewayServer": {Group: "networking.liqo.io", Version: "v1beta1", Resource: "gatewayservers"},
		"GatewayClient": {Group: "networking.liqo.io", Version: "v1beta1", Resource: "gatewayclients"},
		"Connection":    {Group: "networking.liqo.io", Version: "v1beta1", Resource: "connections"},
	}
)

// pair is the networking part of one peering between two made-up clusters, with a tenant namespace of the same name on
// each side. The gateway server is on the remote side.
type pair struct {
	id      string
	port    int64
	local   map[string]*unstructured.Unstructured // by kind
	remote  map[string]*unstructured.Unstructured
	clients map[string]dynamic.Interface // by side
}

func (p *pair) space() string { return "liqo-tenant-" + p.id }

// newPair returns a correct pair whose objects do not exist in the clusters yet.
func newPair(t *testing.T, id string) *pair {
	t.Helper()
	ours, theirs := curve(t), curve(t)
	p := &pair{id: id, port: freeNodePort(t), clients: map[string]dynamic.Interface{
		"local": shared.dynamic(t, "local"), "remote": shared.dynamic(t, "remote"),
	}}
	p.local = p.common(ours, theirs, "10.42.0.0/16")
	p.remote = p.common(theirs, ours, "10.244.0.0/16")
	p.remote["GatewayServer"] = p.object("GatewayServer", map[string]any{
		"endpoint":          map[string]any{"port": int64(51840), "serviceType": "NodePort", "nodePort": p.port},
		"mtu":               int64(1340),
		"secretRef":         map[string]any{"name": "keys"},
		"serverTemplateRef": reference("WgGatewayServerTemplate", "wireguard-server"),
	})
	p.local["GatewayClient"] = p.object("GatewayClient", map[string]any{
		"endpoint":          map[string]any{"addresses": []any{"127.0.0.1"}, "port": p.port, "protocol": "UDP"},
		"mtu":               int64(1340),
		"secretRef":         map[string]any{"name": "keys"},
		"clientTemplateRef": reference("WgGatewayClientTemplate", "wireguard-client"),
	})
	return p
}

func (p *pair) common(own, peer *ecdh.PrivateKey, pods string) map[string]*unstructured.Unstructured {
	text := base64.StdEncoding.EncodeToString
	space := p.object("Namespace", nil)
	space.SetName(p.space())
	space.SetNamespace("")
	label(space, "liqo.io/tenant-namespace", "true")
	keys := p.object("Secret", nil)
	keys.SetName("keys")
	keys.Object["data"] = map[string]any{"privateKey": text(own.Bytes()), "publicKey": text(own.PublicKey().Bytes())}
	public := p.object("PublicKey", map[string]any{"publicKey": text(peer.PublicKey().Bytes())})
	label(public, "networking.liqo.io/gateway-resource", "true")
	cidrs := map[string]any{"pod": []any{pods}, "external": []any{"10.70.0.0/16"}}
	return map[string]*unstructured.Unstructured{
		"Namespace": space, "Secret": keys, "PublicKey": public,
		"Configuration": p.object("Configuration", map[string]any{"remote": map[string]any{"cidr": cidrs}}),
	}
}

func (p *pair) object(kind string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(pairResources[kind].GroupVersion().WithKind(kind))
	o.SetName(p.id)
	o.SetNamespace(p.space())
	label(o, "liqo.io/remote-cluster-id", p.id)
	if spec != nil {
		o.Object["spec"] = spec
	}
	return o
}

// create creates all objects of the pair on both sides.
func (p *pair) create(t *testing.T) {
	t.Helper()
	for side, objects := range map[string]map[string]*unstructured.Unstructured{"local": p.local, "remote": p.remote} {
		for _, kind := range []string{"Namespace", "Configuration", "Secret", "PublicKey", "GatewayClient", "GatewayServer"} {
			if o := objects[kind]; o != nil {
				p.make(t, side, o)
			}
		}
	}
}

func (p *pair) make(t *testing.T, side string, o *unstructured.Unstructured) {
	t.Helper()
	_, err := p.clients[side].Resource(
		pairResources[o.GetKind()],
	).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("%s: %s: %v", p.id, o.GetKind(), err)
	}
}

// field returns the current value of a field of one of the pair's objects, or "" if the object or the field does not
// exist.
func (p *pair) field(t *testing.T, side, kind, name string, fields ...string) string {
	t.Helper()
	o, err := p.clients[side].Resource(pairResources[kind]).Namespace(p.space()).Get(
		t.Context(), name, metav1.GetOptions{},
	)
	if err != nil {
		return ""
	}
	value, found, _ := unstructured.NestedFieldNoCopy(o.Object, fields...)
	if !found {
		return ""
	}
	return fmt.Sprint(value)
}

// connection returns the state of a side's Connection, or "" if the Connection does not exist.
func (p *pair) connection(t *testing.T, side string) string {
	t.Helper()
	return p.field(t, side, "Connection", "gw-"+p.id, "status", "value")
}

// fares waits until both Connections have the state want.
func (p *pair) fares(t *testing.T, want string) {
	t.Helper()
	eventually(t, happens, func() error {
		if a, b := p.connection(t, "local"), p.connection(t, "remote"); a != want || b != want {
			return fmt.Errorf("%s: %q and %q, want %s", p.id, a, b, want)
		}
		return nil
	})
}

func label(o *unstructured.Unstructured, key, value string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	o.SetLabels(labels)
}

func unlabel(o *unstructured.Unstructured, key string) {
	labels := o.GetLabels()
	delete(labels, key)
	o.SetLabels(labels)
}

func reference(kind, name string) map[string]any {
	return map[string]any{"apiVersion": "networking.liqo.io/v1beta1", "kind": kind, "name": name, "namespace": "liqo"}
}

func curve(t *testing.T) *ecdh.PrivateKey {
	t.Helper()
	k, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// freeNodePort returns a node port on which no UDP socket of this machine listens.
func freeNodePort(t *testing.T) int64 {
	t.Helper()
	for range 200 {
		port := 30000 + mathrand.IntN(2768)
		if err := bound(port); err == nil {
			return int64(port)
		}
	}
	t.Fatal("no free node port")
	return 0
}

// bound returns an error if a UDP port on loopback cannot be bound.
func bound(port int) error {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP("127.0.0.1"), Port: port})
	if err != nil {
		return err
	}
	return errors.Join(err, socket.Close())
}
