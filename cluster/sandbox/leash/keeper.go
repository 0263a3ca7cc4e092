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

// Keeper is the sandbox's hold on its keeper process.
type Keeper struct {
	dir  string
	pipe io.Closer
	gone chan struct{}
	err  error // why the keeper ended; set before gone is closed
}

// Keep starts a keeper that makes dir and, when this process ends, removes it
// after killing every process that called Hold. The folder must not exist, or
// be empty. The keeper is there before the folder is, so that no moment is
// left in which a kill would leave it.
func Keep(dir string) (*Keeper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, dir)
	cmd.Args[0] = keeperArg
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of the terminal's signals
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

// End ends everything that is on the leash, removes the folder, and returns
// when both are gone. It returns an error when the keeper did not live to do
// so, and removes the folder itself.
func (k *Keeper) End() error {
	_ = k.pipe.Close()
	<-k.gone
	if k.err != nil {
		return errors.Join(fmt.Errorf("the sandbox's keeper: %w", k.err), remove(k.dir))
	}
	return nil
}

// Gone is closed when the keeper has ended, be it that somebody killed it.
func (k *Keeper) Gone() <-chan struct{} { return k.gone }

// IsKeeper tells whether this process was started by Keep.
func IsKeeper() bool { return os.Args[0] == keeperArg }

// RunKeeper is the keeper's main function and returns its exit code.
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
	_, _ = io.Copy(io.Discard, os.Stdin) // returns when the sandbox is gone
	_ = listener.Close()
	held.end()
	if err := remove(dir); err != nil {
		fmt.Fprintf(os.Stderr, "remove the sandbox's folder: %v\n", err)
		return 1
	}
	return 0
}

func prepare(dir string) (net.Listener, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the sandbox's folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's folder: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty, and a sandbox removes its folder when it ends", dir)
	}
	listener, err := net.Listen("unix", socket(dir))
	if err != nil {
		_ = os.Remove(dir)
		return nil, fmt.Errorf("listen in the sandbox's folder: %w", err)
	}
	return listener, nil
}

// tethers are the connections of the processes on the leash. A process is
// alive for as long as its connection is open, so its number is its own.
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
	_, _ = io.Copy(io.Discard, reader) // returns when the process is gone
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

// end kills what is on the leash and waits until it is gone.
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
