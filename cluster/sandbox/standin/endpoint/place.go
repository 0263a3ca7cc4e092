package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Ports of places. A place with its own address uses endpointPort. Places that share an address use ports from
// firstNodePort upwards. These ports are valid for load balancers, node ports and host ports.
const (
	endpointPort   = 60443
	firstNodePort  = 30443
	manyPlaces     = 250
	loopback       = "127.0.0.1"
	placeOf        = "127.60.0.%d"
	withinShutdown = 2 * time.Second
)

// Place is the external address of a cluster: an address and a port on this machine. It is reserved for this sandbox
// until Close is called.
type Place struct {
	Address string // a loopback address
	Port    int    // port of the endpoint

	held net.PacketConn
}

// Claim reserves a free place. If all of 127.0.0.0/8 is local on this machine, each place has its own address.
// Otherwise each place has its own port on a shared address.
func Claim(ctx context.Context) (*Place, error) {
	var err error
	for n := range manyPlaces {
		var p *Place
		if p, err = hold(ctx, fmt.Sprintf(placeOf, n+1), endpointPort); err == nil {
			return p, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	for n := range manyPlaces {
		p, other := hold(ctx, loopback, firstNodePort+n)
		if other == nil {
			return p, nil
		}
		err = errors.Join(err, other)
	}
	return nil, fmt.Errorf("no loopback address and no port is free: %w", err)
}

// hold reserves a place by binding the UDP port, because nothing else uses it.
func hold(ctx context.Context, address string, port int) (*Place, error) {
	where := net.JoinHostPort(address, strconv.Itoa(port))
	held, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp4", where)
	if err != nil {
		return nil, err
	}
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", where)
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return &Place{Address: address, Port: port, held: held}, free.Close()
}

// Own reports whether the place has its own address. All ports of that address are then free.
func (p *Place) Own() bool { return p.Address != loopback }

// String returns host:port.
func (p *Place) String() string { return net.JoinHostPort(p.Address, strconv.Itoa(p.Port)) }

// Close releases the place.
func (p *Place) Close() { _ = p.held.Close() }

// reached adds the place's address to a node's addresses. If the argument is false, it removes the address.
func (p *Player) reached(ctx context.Context, is bool) error {
	nodes, err := p.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "!virtual-node.interlink/type"})
	if err != nil || len(nodes.Items) == 0 {
		return err
	}
	patch := fmt.Sprintf(
		`{"status":{"addresses":[{"type":%q,"address":%q}]}}`, corev1.NodeExternalIP, p.options.Place.Address,
	)
	if !is {
		patch = fmt.Sprintf(`{"status":{"addresses":[{"$patch":"delete","type":%q}]}}`, corev1.NodeExternalIP)
	}
	_, err = p.client.CoreV1().Nodes().Patch(
		ctx, nodes.Items[0].Name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "cloud-provider"}, "status",
	)
	return err
}
