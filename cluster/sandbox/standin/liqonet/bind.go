package liqonet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.zx2c4.com/wireguard/conn"
)

// loopback is the only address that gateways listen on and send from.
const loopback = "127.0.0.1"

var errElsewhere = errors.New("stand-in: no packet leaves this machine")

// bind is the conn.Bind of a WireGuard endpoint. It has one UDP socket on loopback, so it cannot reach other machines.
type bind struct{ socket *net.UDPConn }

// Open listens on the given port. Port 0 means any free port.
func (b *bind) Open(port uint16) ([]conn.ReceiveFunc, uint16, error) {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(loopback), Port: int(port)})
	if err != nil {
		return nil, 0, err
	}
	b.socket = socket
	receive := func(packets [][]byte, sizes []int, from []conn.Endpoint) (int, error) {
		n, sender, err := socket.ReadFromUDPAddrPort(packets[0])
		if err != nil {
			return 0, err
		}
		sizes[0], from[0] = n, &conn.StdNetEndpoint{AddrPort: sender}
		return 1, nil
	}
	return []conn.ReceiveFunc{receive}, uint16(socket.LocalAddr().(*net.UDPAddr).Port), nil
}

// Close closes the socket. It does nothing before Open.
func (b *bind) Close() error {
	if b.socket == nil {
		return nil
	}
	socket := b.socket
	b.socket = nil
	return socket.Close()
}

func (b *bind) SetMark(uint32) error { return nil }
func (b *bind) BatchSize() int       { return 1 }

// Send sends packets to an endpoint on this machine.
func (b *bind) Send(packets [][]byte, to conn.Endpoint) error {
	socket := b.socket
	if socket == nil {
		return net.ErrClosed
	}
	at, err := netip.ParseAddrPort(to.DstToString())
	if err != nil {
		return err
	}
	if !at.Addr().IsLoopback() {
		return fmt.Errorf("%s: %w", at, errElsewhere)
	}
	for _, packet := range packets {
		if _, err := socket.WriteToUDPAddrPort(packet, at); err != nil {
			return err
		}
	}
	return nil
}

func (b *bind) ParseEndpoint(text string) (conn.Endpoint, error) {
	at, err := netip.ParseAddrPort(text)
	return &conn.StdNetEndpoint{AddrPort: at}, err
}
