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

// startWithin is how long a server may take until it listens.
const startWithin = time.Minute

// instance is what runs in a pod.
type instance struct {
	dir   string
	at    string         // the address of this machine that it listens at
	ports map[int]string // the container's to an address of this machine

	mu    sync.Mutex
	said  bytes.Buffer
	fault error // it has ended
	stop  func()
	once  sync.Once
	ended chan struct{}
}

// over marks that nothing runs, or nothing any more.
func (i *instance) over(why error) {
	i.mu.Lock()
	if i.fault == nil {
		i.fault = why
	}
	i.mu.Unlock()
	i.once.Do(func() { close(i.ended) })
}

// Write takes what the program says.
func (i *instance) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.said.Len() > 1<<20 {
		i.said.Reset()
	}
	return i.said.Write(p)
}

// log is what it has said, with the paths of the container.
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

// port is where a port of the container is here, on a port that is free.
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

// nginx runs the program with a configuration, in a group of its own that the
// sandbox's leash ends.
func (i *instance) nginx(program, conf string) error {
	at := filepath.Join(i.dir, "nginx.conf")
	if err := os.WriteFile(at, []byte(conf), 0o600); err != nil {
		return err
	}
	global := "daemon off;"
	if os.Geteuid() == 0 { // one user, as in the container
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
		i.over(fmt.Errorf("it ended: %v", cmd.Wait()))
	}()
	return nil
}

// up returns when it listens, or why it does not.
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
				return fmt.Errorf("it does not listen: %w", err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}
