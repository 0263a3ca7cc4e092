package liqonet

import (
	"encoding/binary"
	"os"
	"sync"

	"golang.zx2c4.com/wireguard/tun"
)

// A ping is an IPv4 UDP packet between the inner addresses of a tunnel, on upstream's port (liqotech/liqo v1.2.0,
// pkg/gateway/connection/flags.go, --ping-port). The headers have no checksums. The payload is a reply flag and the
// number of the ping.
const (
	pingPort  = 12345
	pingSize  = 20 + 8 + 5
	pingsKept = 16
)

// inner contains the inner tunnel addresses by mode (liqotech/liqo v1.2.0, pkg/gateway/tunnel/netlink.go).
var inner = map[string][4]byte{server: {169, 254, 18, 1}, client: {169, 254, 18, 2}}

// link is the network interface at one end of a tunnel. It carries only pings.
type link struct {
	own, other [4]byte
	mtu        int
	answered   func(number uint32) // called for each reply

	out    chan []byte
	events chan tun.Event
	closed chan struct{}
	once   sync.Once
}

func newLink(mode string, mtu int, answered func(uint32)) *link {
	other := inner[server]
	if mode == server {
		other = inner[client]
	}
	return &link{
		own: inner[mode], other: other, mtu: mtu, answered: answered,
		out: make(chan []byte, pingsKept), events: make(chan tun.Event), closed: make(chan struct{}),
	}
}

// ping queues a ping or a reply. It drops the packet if the queue is full.
func (l *link) ping(number uint32, answer bool) {
	p := make([]byte, pingSize)
	p[0], p[8], p[9] = 4<<4|5, 64, 17
	binary.BigEndian.PutUint16(p[2:], pingSize)
	copy(p[12:], l.own[:])
	copy(p[16:], l.other[:])
	binary.BigEndian.PutUint16(p[20:], pingPort)
	binary.BigEndian.PutUint16(p[22:], pingPort)
	binary.BigEndian.PutUint16(p[24:], pingSize-20)
	if answer {
		p[28] = 1
	}
	binary.BigEndian.PutUint32(p[29:], number)
	select {
	case l.out <- p:
	default:
	}
}

// Read returns packets to send through the tunnel.
func (l *link) Read(packets [][]byte, sizes []int, offset int) (int, error) {
	select {
	case <-l.closed:
		return 0, os.ErrClosed
	case p := <-l.out:
		sizes[0] = copy(packets[0][offset:], p)
		return 1, nil
	}
}

// Write receives packets from the tunnel. WireGuard has already authenticated the sender.
func (l *link) Write(packets [][]byte, offset int) (int, error) {
	for _, whole := range packets {
		p := whole[offset:]
		if len(p) != pingSize || [4]byte(p[12:16]) != l.other || binary.BigEndian.Uint16(p[22:]) != pingPort {
			continue
		}
		number := binary.BigEndian.Uint32(p[29:])
		if p[28] == 1 {
			l.answered(number)
		} else {
			l.ping(number, true)
		}
	}
	return len(packets), nil
}

func (l *link) File() *os.File           { return nil }
func (l *link) MTU() (int, error)        { return l.mtu, nil }
func (l *link) Name() (string, error)    { return "liqo-tunnel", nil }
func (l *link) Events() <-chan tun.Event { return l.events }
func (l *link) BatchSize() int           { return 1 }

// Close makes Read return and closes the event channel.
func (l *link) Close() error {
	l.once.Do(func() {
		close(l.closed)
		close(l.events)
	})
	return nil
}
