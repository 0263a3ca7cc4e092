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

// What places are: the port of the endpoint where each has an address of its own,
// and the first one where they share one (any way of opening a port takes it).
const (
	endpointPort   = 60443
	firstNodePort  = 30443
	manyPlaces     = 250
	loopback       = "127.0.0.1"
	placeOf        = "127.60.0.%d"
	withinShutdown = 2 * time.Second
)

// Place is where a cluster is reached from outside on this machine. No other
// sandbox has it until Close.
type Place struct {
	Address string // of loopback
	Port    int    // the endpoint's

	held net.PacketConn
}

// Claim finds a place that is free. Each has an address of its own where all of
// 127.0.0.0/8 is this machine, and else a port of its own.
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
	return nil, fmt.Errorf("no address and no port of loopback is free: %w", err)
}

// hold claims a place: its UDP port, which nothing else wants.
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

// Own tells whether nobody else has the address: all of its ports are free.
func (p *Place) Own() bool { return p.Address != loopback }

// String is host:port of the endpoint.
func (p *Place) String() string { return net.JoinHostPort(p.Address, strconv.Itoa(p.Port)) }

// Close gives it back.
func (p *Place) Close() { _ = p.held.Close() }

// reached says in the status of a node that it is reached at the place, or that it
// is no more.
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
