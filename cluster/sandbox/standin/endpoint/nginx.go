package endpoint

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startWithin is the timeout for a server to start listening.
const startWithin = time.Minute

// instance is the program of one pod.
type instance struct {
	dir   string
	at    string         // loopback address that it listens on
	ports map[int]string // container port to address on this machine

	mu    sync.Mutex
	said  bytes.Buffer
	fault error // why the program exited
	stop  func()
	once  sync.Once
	ended chan struct{}
}

// over records why the program exited or did not start.
func (i *instance) over(why error) {
	i.mu.Lock()
	if i.fault == nil {
		i.fault = why
	}
	i.mu.Unlock()
	i.once.Do(func() { close(i.ended) })
}

// Write records the program's output.
func (i *instance) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.said.Len() > 1<<20 {
		i.said.Reset()
	}
	return i.said.Write(p)
}

// log returns the program's output with the container's paths.
func (i *instance) log() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return strings.ReplaceAll(i.said.String(), filepath.Join(i.dir, "root"), "")
}

func (i *instance) failed() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fault
}

func (i *instance) close() {
	i.stop()
	<-i.ended
	_ = os.RemoveAll(i.dir)
}

// port returns the address on this machine for container port n. The first call chooses a free port.
func (i *instance) port(n int) (string, bool) {
	if address, ok := i.ports[n]; ok {
		return address, true
	}
	listener, err := net.Listen("tcp", i.at+":0")
	if err != nil {
		return "", false
	}
	address := listener.Addr().String()
	listener.Close()
	i.ports[n] = address
	return address, true
}

// nginx runs the program nginx with conf in its own process group. The process group is killed when the sandbox exits.
func (i *instance) nginx(program, conf string) error {
	at := filepath.Join(i.dir, "nginx.conf")
	if err := os.WriteFile(at, []byte(conf), 0o600); err != nil {
		return err
	}
	global := "daemon off;"
	if os.Geteuid() == 0 { // a single user, as in the container
		global += " user root;"
	}
	cmd := exec.Command(program, "-p", i.dir, "-c", at, "-e", "stderr", "-g", global)
	cmd.Stdout, cmd.Stderr = i, i
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	i.stop = func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	go func() {
		i.over(fmt.Errorf("nginx exited: %v", cmd.Wait()))
	}()
	return nil
}

// up waits until the program listens on all ports. It returns an error if the program exits first.
func (i *instance) up(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for _, address := range i.ports {
		for {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err == nil {
				conn.Close()
				break
			}
			select {
			case <-i.ended:
				return i.failed()
			case <-ctx.Done():
				return fmt.Errorf("nginx does not listen: %w", err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}
