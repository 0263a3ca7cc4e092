package leash

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Keeper is the sandbox's handle for its keeper process.
type Keeper struct {
	dir  string
	pipe io.Closer
	gone chan struct{}
	err  error // why the keeper exited; set before gone is closed
}

// Keep starts a keeper process, and the keeper creates dir. When this process exits, the keeper kills every process
// that called Hold and removes dir. dir must be empty or must not exist. Because the keeper creates dir, killing this
// process never leaves dir behind.
func Keep(dir string) (*Keeper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, dir)
	cmd.Args[0] = keeperArg
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // ignores signals from the terminal
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	answer, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the sandbox's keeper: %w", err)
	}
	line, err := bufio.NewReader(answer).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		return nil, errors.New("the sandbox's keeper did not start")
	}
	k := &Keeper{dir: dir, pipe: pipe, gone: make(chan struct{})}
	go func() {
		k.err = cmd.Wait()
		close(k.gone)
	}()
	if line = strings.TrimSpace(line); line != "ok" {
		<-k.gone
		return nil, errors.New(line)
	}
	return k, nil
}

// End kills every process that called Hold, removes the directory, and waits until both are done. If the keeper itself
// failed, End removes the directory and returns an error.
func (k *Keeper) End() error {
	_ = k.pipe.Close()
	<-k.gone
	if k.err != nil {
		return errors.Join(fmt.Errorf("the sandbox's keeper: %w", k.err), remove(k.dir))
	}
	return nil
}

// Gone returns a channel that is closed when the keeper exits for any reason.
func (k *Keeper) Gone() <-chan struct{} { return k.gone }

// IsKeeper reports whether Keep started this process.
func IsKeeper() bool { return os.Args[0] == keeperArg }

// RunKeeper is the main function of the keeper. It returns an exit code.
func RunKeeper() int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	dir := os.Args[1]
	listener, err := prepare(dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ok")
	var held tethers
	go held.accept(listener)
	_, _ = io.Copy(io.Discard, os.Stdin) // blocks until the sandbox exits
	_ = listener.Close()
	held.end()
	if err := remove(dir); err != nil {
		fmt.Fprintf(os.Stderr, "remove the sandbox's directory: %v\n", err)
		return 1
	}
	return 0
}

func prepare(dir string) (net.Listener, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the sandbox's directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's directory: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty; use an empty directory, because the sandbox deletes it on exit", dir)
	}
	listener, err := net.Listen("unix", socket(dir))
	if err != nil {
		_ = os.Remove(dir)
		return nil, fmt.Errorf("listen in the sandbox's directory: %w", err)
	}
	return listener, nil
}

// tethers contains the connections from processes that called Hold. A connection closes when its process exits, so the
// PID of an open connection cannot have been reused.
type tethers struct {
	mu    sync.Mutex
	ended bool
	open  map[net.Conn]int
	all   sync.WaitGroup
}

func (t *tethers) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go t.hold(conn)
	}
}

func (t *tethers) hold(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	line, err := reader.ReadString('\n')
	pid, bad := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || bad != nil || pid <= 1 || !t.add(conn, pid) {
		return
	}
	_, _ = io.Copy(io.Discard, reader) // blocks until the process exits
	t.mu.Lock()
	delete(t.open, conn)
	t.mu.Unlock()
	t.all.Done()
}

func (t *tethers) add(conn net.Conn, pid int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	if t.open == nil {
		t.open = map[net.Conn]int{}
	}
	t.open[conn] = pid
	t.all.Add(1)
	return true
}

func (t *tethers) end() {
	t.mu.Lock()
	t.ended = true
	for _, pid := range t.open {
		kill(pid)
	}
	t.mu.Unlock()
	gone := make(chan struct{})
	go func() { t.all.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(goneIn):
	}
}
