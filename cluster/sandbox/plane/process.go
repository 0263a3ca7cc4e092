package plane

import (
	"errors"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Limits for keepUp, which restarts programs that exit, like a kubelet. kwok 0.8.0 sometimes crashes at startup,
// because its nodes and pods compile their stages concurrently. keepUp gives up after maxRestarts restarts. A program
// that has run for longer than goodLife resets this count.
const (
	maxRestarts = 3
	goodLife    = time.Minute
)

// process is a program that restarts until it is killed.
type process struct {
	start func() (*exec.Cmd, error)
	ended chan struct{} // closed when the program was killed or keepUp has given up

	mu     sync.Mutex
	cmd    *exec.Cmd
	killed bool
}

// keepUp starts a program as the leader of a process group and restarts it when it exits. If keepUp gives up, it calls
// gaveUp with the program's error.
func keepUp(start func() (*exec.Cmd, error), gaveUp func(error)) (*process, error) {
	cmd, err := start()
	if err != nil {
		return nil, err
	}
	r := &process{start: start, cmd: cmd, ended: make(chan struct{})}
	go func() {
		err := r.watch()
		close(r.ended)
		if err != nil {
			gaveUp(err)
		}
	}()
	return r, nil
}

// watch restarts the program each time the program exits. After kill, watch returns nil. When watch gives up, it
// returns the program's error.
func (r *process) watch() error {
	restarts, since := 0, time.Now()
	for {
		err := r.cmd.Wait()
		if time.Since(since) > goodLife {
			restarts = 0
		}
		restarts++
		since = time.Now()
		if done, fault := r.restart(restarts <= maxRestarts); done {
			return nil
		} else if fault != nil {
			return errors.Join(err, fault)
		}
	}
}

// restart restarts the program unless kill was called. killed reports whether kill was called. If may is false,
// restart returns an error instead of restarting the program.
func (r *process) restart(may bool) (killed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed {
		return true, nil
	}
	if !may {
		return false, errors.New("it exits again after every restart")
	}
	cmd, err := r.start()
	if err == nil {
		r.cmd = cmd
	}
	return false, err
}

// kill kills the program's process group and waits until the program has exited.
func (r *process) kill() {
	r.mu.Lock()
	r.killed = true
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	r.mu.Unlock()
	<-r.ended
}
