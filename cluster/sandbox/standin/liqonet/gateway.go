package liqonet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/sandbox/standin"
)

// resolveWithin is the timeout for resolving a server's host name.
const resolveWithin = time.Second

// gateway is the program in the container wireguard of one pod.
type gateway struct {
	namespace, pod string
	arguments      []string
	secret         string // name of the Secret with its keys
	log            journal

	wire    *wire
	port    uint16         // port that the gateway listens on
	peer    key            // public key of the current peer
	at      netip.AddrPort // address that a client connects to
	crashes int32
	turn    int // index of the PublicKey in use
}

// publicKey is a PublicKey object. It contains the peer's public key.
type publicKey struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PublicKey []byte `json:"publicKey"`
	} `json:"spec"`
}

func (g *gateway) close() {
	if g.wire != nil {
		g.wire.close()
	}
	g.wire, g.peer = nil, key{}
}

func (g *gateway) flag(name string) string { return flag(g.arguments, name) }

// pods runs the gateways of running pods and stops all others.
func (p *Player) pods(ctx context.Context, all objects) error {
	runs := map[types.UID]bool{}
	var faults []error
	for i := range all.pods {
		pod := &all.pods[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		runs[pod.UID] = true
		g := p.gateways[pod.UID]
		if g == nil {
			g = begin(pod)
			p.gateways[pod.UID] = g
		}
		faults = append(faults, p.run(ctx, g, pod, all))
	}
	for id, g := range p.gateways {
		if !runs[id] {
			g.close()
			delete(p.gateways, id)
		}
	}
	return errors.Join(faults...)
}

func begin(pod *corev1.Pod) *gateway {
	g := &gateway{namespace: pod.Namespace, pod: pod.Name}
	for _, c := range pod.Spec.Containers {
		if c.Name == wireguardName {
			g.arguments = c.Args
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			g.secret = v.Secret.SecretName
		}
	}
	return g
}

// run starts the WireGuard endpoint if necessary, configures the peer and updates the Connection.
func (p *Player) run(ctx context.Context, g *gateway, pod *corev1.Pod, all objects) error {
	err := p.start(ctx, g, all.services)
	if errors.Is(err, errCrash) {
		return p.crash(ctx, g, pod, err)
	}
	if err != nil {
		g.log.sayf("%v", err)
		return nil
	}
	if err := p.recover(ctx, pod); err != nil {
		return err
	}
	if err := g.pair(ctx, all.keys); err != nil {
		g.log.sayf("%v", err)
		return nil
	}
	if g.peer == (key{}) {
		return nil
	}
	return p.connection(ctx, g, all.connections)
}

// start starts the WireGuard endpoint unless it is already running on the right port.
func (p *Player) start(ctx context.Context, g *gateway, services []corev1.Service) error {
	port := g.listens(services)
	if g.wire != nil && g.port == port {
		return nil
	}
	g.close()
	private, err := p.private(ctx, g)
	if err != nil {
		return err
	}
	mtu, err := strconv.Atoi(g.flag("mtu"))
	if err != nil {
		return fmt.Errorf("%w: the MTU: %w", errCrash, err)
	}
	g.wire, err = newWire(g.flag("mode"), private, port, mtu, &g.log)
	if err != nil {
		return fmt.Errorf("stand-in: cannot listen on UDP port %d of %s on this machine: %w", port, loopback, err)
	}
	g.port = port
	if port != 0 {
		g.log.sayf("stand-in: listening on UDP %s:%d", loopback, port)
	}
	return nil
}

// listens returns the port that a gateway listens on. For a server it is the external port of its Service. It is 0,
// which means any port, for a client and for a server without such a port.
func (g *gateway) listens(services []corev1.Service) uint16 {
	s := find(services, g.namespace, "gw-"+g.flag("name"))
	switch {
	case g.flag("mode") != server || s == nil:
		return 0
	case s.Spec.Type == corev1.ServiceTypeNodePort:
		return uint16(s.Spec.Ports[0].NodePort)
	case s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) > 0:
		return uint16(s.Spec.Ports[0].Port)
	}
	return 0
}

// private returns a gateway's private key. As in upstream, the container exits if the key does not have 32 bytes. The
// container never reads the public key.
//
// Source: liqotech/liqo v1.2.0, pkg/gateway/tunnel/wireguard/keys.go (LoadKeys) and cmd/gateway/wireguard/main.go.
func (p *Player) private(ctx context.Context, g *gateway) (key, error) {
	s, err := standin.Got[corev1.Secret](ctx, p.seen, secrets, g.namespace, g.secret)
	if err != nil {
		return key{}, err
	}
	return privateKey(s.Data[privateField])
}

func privateKey(data []byte) (key, error) {
	if len(data) != len(key{}) {
		return key{}, fmt.Errorf(
			"%w: unable to load keys: %s has %d bytes, not %d", errCrash, privateField, len(data), len(key{}),
		)
	}
	return key(data), nil
}

// pair configures the peer with the key in the PublicKey. If there are several PublicKeys, each call uses the next one.
//
// A key that is too short makes upstream's reconciliation panic. controller-runtime recovers, and the gateway keeps its
// current peer. All releases behave like this, because controller-runtime recovers by default since v0.19.
//
// Source: liqotech/liqo v1.2.0, pkg/gateway/tunnel/wireguard: publickeys_controller.go and device.go (configureDevice);
// kubernetes-sigs/controller-runtime v0.23.1, pkg/controller/controller.go (RecoverPanic).
func (g *gateway) pair(ctx context.Context, all []publicKey) error {
	var theirs []publicKey
	for _, k := range all {
		if k.Namespace == g.namespace && k.Labels[remoteID] == g.flag("remote-cluster-id") {
			theirs = append(theirs, k)
		}
	}
	if len(theirs) == 0 {
		return nil // keep the existing peer
	}
	if g.flag("mode") == client && !g.at.IsValid() {
		var err error
		if g.at, err = resolve(ctx, g.flag("endpoint-address"), g.flag("endpoint-port")); err != nil {
			return err
		}
	}
	g.turn++
	raw := theirs[g.turn%len(theirs)].Spec.PublicKey
	if len(raw) < len(key{}) {
		return fmt.Errorf("panic: the public key has %d bytes, not %d [recovered]", len(raw), len(key{}))
	}
	now := key(raw[:len(key{})]) // upstream ignores extra bytes
	if now == g.peer {
		return nil
	}
	if err := g.wire.peer(now, g.at); err != nil {
		return err
	}
	g.peer = now
	g.log.sayf("the peer is configured")
	return nil
}

// resolve returns the first address of host.
func resolve(ctx context.Context, host, port string) (netip.AddrPort, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(a, uint16(n)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("the endpoint is not set yet: %w", err)
	}
	return netip.AddrPortFrom(all[0].Unmap(), uint16(n)), nil
}
