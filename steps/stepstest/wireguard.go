package stepstest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

// responders maps macros to the WireGuard devices of a state. These are real devices that answer handshakes but forward
// no traffic.
type responders struct {
	ports   map[string]string
	devices []*device.Device
}

var responder = regexp.MustCompile(`\$\{wireguard ([^ }]+) ([^ }]+)\}`)

// expand replaces ${wireguard PRIVATE PEER} with the loopback port of a device that has this private key and this peer.
// The keys are in base64. Equal macros refer to the same device. If a device can't start, the error replaces the macro.
func (r *responders) expand(text string) string {
	return responder.ReplaceAllStringFunc(text, func(m string) string {
		port := r.ports[m]
		if port != "" {
			return port
		}
		args := responder.FindStringSubmatch(m)
		port, err := r.start(args[1], args[2])
		if err != nil {
			return err.Error()
		}
		if r.ports == nil {
			r.ports = map[string]string{}
		}
		r.ports[m] = port
		return port
	})
}

func (r *responders) start(private, peer string) (port string, err error) {
	d := device.NewDevice(newNoTunnel(), conn.NewStdNetBind(), device.NewLogger(device.LogLevelSilent, ""))
	r.devices = append(r.devices, d)
	var keys [2][]byte
	for i, text := range []string{private, peer} {
		if keys[i], err = base64.StdEncoding.DecodeString(text); err != nil {
			return "", fmt.Errorf("${wireguard}: %w", err)
		}
	}
	if err := d.IpcSet(
		fmt.Sprintf("private_key=%x\nlisten_port=0\npublic_key=%x\nallowed_ip=192.0.2.2/32\n", keys[0], keys[1]),
	); err != nil {
		return "", fmt.Errorf("${wireguard}: %w", err)
	}
	if err := d.Up(); err != nil {
		return "", fmt.Errorf("${wireguard}: %w", err)
	}
	var state bytes.Buffer
	if err := d.IpcGetOperation(&state); err != nil {
		return "", fmt.Errorf("${wireguard}: %w", err)
	}
	for lines := bufio.NewScanner(&state); lines.Scan(); {
		if port, ok := strings.CutPrefix(lines.Text(), "listen_port="); ok {
			return port, nil
		}
	}
	return "", fmt.Errorf("${wireguard}: the device does not report its port")
}

func (r *responders) close() {
	for _, d := range r.devices {
		d.Close()
	}
}

// scrub returns pairs for a strings.Replacer, because ports differ from run to run.
func (r *responders) scrub() []string {
	var out []string
	for _, port := range r.ports {
		out = append(out, port, "WIREGUARD")
	}
	return out
}

// noTunnel is the network device of a tunnel without traffic.
type noTunnel struct {
	events chan tun.Event
	closed chan struct{}
	once   sync.Once
}

func newNoTunnel() *noTunnel {
	return &noTunnel{events: make(chan tun.Event), closed: make(chan struct{})}
}

func (n *noTunnel) Read([][]byte, []int, int) (int, error) {
	<-n.closed
	return 0, os.ErrClosed
}

func (n *noTunnel) Close() error {
	n.once.Do(func() {
		close(n.events)
		close(n.closed)
	})
	return nil
}

func (n *noTunnel) Write(packets [][]byte, _ int) (int, error) { return len(packets), nil }
func (n *noTunnel) File() *os.File                             { return nil }
func (n *noTunnel) MTU() (int, error)                          { return device.DefaultMTU, nil }
func (n *noTunnel) Name() (string, error)                      { return "responder", nil }
func (n *noTunnel) Events() <-chan tun.Event                   { return n.events }
func (n *noTunnel) BatchSize() int                             { return 1 }
