package plane

import (
	"errors"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Limits for restarting programs. A program that exits is restarted, as a kubelet would do, because kwok 0.8.0
// sometimes crashes on start when its nodes and its pods compile their stages at the same time. A program is given up
// if it exits more than maxRestarts times without running for goodLife in between.
const (
	maxRestarts = 3
	goodLife    = time.Minute
)

// process is a program that is restarted until it is killed.
type process struct {
	start func() (*exec.Cmd, error)
	ended chan struct{} // closed when the program was killed or given up

	mu     sync.Mutex
	cmd    *exec.Cmd
	killed bool
}

// keepUp starts a program as the leader of a process group, and restarts it when it exits. If it gives up, it calls
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

// watch waits for the program. It returns nil when the program was killed, or an error when it was given up.
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

// restart restarts the program, or reports that it was killed.
func (r *process) restart(may bool) (killed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed {
		return true, nil
	}
	if !may {
		return false, errors.New("it does not stay up")
	}
	cmd, err := r.start()
	if err == nil {
		r.cmd = cmd
	}
	return false, err
}

// kill kills the program and its process group, and waits until the program has exited.
func (r *process) kill() {
	r.mu.Lock()
	r.killed = true
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	r.mu.Unlock()
	<-r.ended
}
