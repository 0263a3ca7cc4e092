package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// Networks is a group of network namespaces. A bridge connects them to each other and to this machine.
type Networks struct {
	bridge string
	prefix string // prefix of the namespaces' addresses, without the last number
	count  atomic.Int32
}

// Network is a network namespace, like that of a pod.
type Network struct {
	Address string // reachable from the other namespaces and this machine
	name    string
}

// bridges is the prefix of bridge names. A bridge's name ends with the process ID. A namespace's name is the name of
// its bridge followed by a number.
const bridges = "carrick-"

// NewNetworks creates the bridge, and deletes it when the test ends. It skips the test if the process is not permitted
// to create namespaces or bridges.
func NewNetworks(t testing.TB) *Networks {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces require root")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("WireGuard in userspace requires a TUN device: %v", err)
	}
	if err := ip("netns", "list"); err != nil {
		t.Skipf("network namespaces require ip netns: %v", err)
	}
	sweep()
	pid := os.Getpid()
	// 198.18.0.0/15 is reserved for network benchmarks (RFC 2544), so it does not conflict with a real network.
	n := &Networks{bridge: bridges + strconv.Itoa(pid), prefix: fmt.Sprintf("198.%d.%d.", 18+pid>>8&1, pid&255)}
	if err := ip("link", "add", n.bridge, "type", "bridge"); err != nil {
		t.Skipf("a bridge between network namespaces is not permitted here: %v", err)
	}
	t.Cleanup(func() {
		if err := ip("link", "delete", n.bridge); err != nil {
			t.Error(err)
		}
	})
	err1 := ip("address", "add", n.prefix+"1/24", "dev", n.bridge)
	err2 := ip("link", "set", n.bridge, "up")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return n
}

// sweep deletes bridges and namespaces that killed test processes left behind.
func sweep() {
	for folder, command := range map[string][]string{
		"/sys/class/net": {"link", "delete"},
		"/run/netns":     {"netns", "delete"},
	} {
		left, _ := filepath.Glob(filepath.Join(folder, bridges+"*"))
		for _, path := range left {
			name := filepath.Base(path)
			pid, _, _ := strings.Cut(strings.TrimPrefix(name, bridges), "-")
			if _, err := os.Stat("/proc/" + pid); err != nil {
				_ = ip(append(command, name)...)
			}
		}
	}
}

// Add creates a namespace, and deletes it when the test ends. It can be called from any goroutine.
func (n *Networks) Add(t testing.TB) (*Network, error) {
	number := n.count.Add(1) + 1
	net := &Network{Address: fmt.Sprint(n.prefix, number), name: fmt.Sprintf("%s-%d", n.bridge, number)}
	if err := ip("netns", "add", net.name); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := ip("netns", "delete", net.name); err != nil {
			t.Error(err)
		}
	})
	outside := fmt.Sprintf("%s-%d", strings.TrimPrefix(n.bridge, bridges), number)
	for _, line := range []string{
		"link add " + outside + " type veth peer name eth0 netns " + net.name,
		"link set " + outside + " master " + n.bridge + " up",
		"-n " + net.name + " address add " + net.Address + "/24 dev eth0",
		"-n " + net.name + " link set eth0 up",
		"-n " + net.name + " link set lo up",
	} {
		if err := ip(strings.Fields(line)...); err != nil {
			return nil, err
		}
	}
	return net, nil
}

// Forward makes a loopback address of this machine available in the namespace, until the test ends. It listens on the
// same address in the namespace and forwards the connections.
func (n *Network) Forward(t testing.TB, address string) error {
	l, err := n.listen(address)
	if err == nil {
		Forward(t, l, address)
	}
	return err
}

func (n *Network) listen(address string) (l net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that no other goroutine runs in the namespace
		var namespace *os.File
		if namespace, err = os.Open("/var/run/netns/" + n.name); err != nil {
			return
		}
		defer namespace.Close()
		if err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err == nil {
			l, err = net.Listen("tcp", address)
		}
	}()
	<-done
	return l, err
}

// command returns a command that runs in the namespace, with its own /run. WireGuard's sockets in /run are named after
// interfaces, and the interfaces have the same names in all namespaces.
func (n *Network) command(ctx context.Context, program string, args []string) *exec.Cmd {
	if n == nil {
		return exec.CommandContext(ctx, program, args...)
	}
	inside := []string{"netns", "exec", n.name, "sh", "-c", `mount -t tmpfs tmpfs /run && exec "$0" "$@"`, program}
	return exec.CommandContext(ctx, "ip", append(inside, args...)...)
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
