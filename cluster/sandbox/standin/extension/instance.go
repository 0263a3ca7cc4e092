package extension

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/sandbox/leash"
	"carrick/cluster/sandbox/podnet"
	"carrick/cluster/sandbox/standin"
)

const (
	firstBackOff = 10 * time.Second
	lastBackOff  = 5 * time.Minute
	graceful     = 8 * time.Second // until a program is killed that was told to end
	manyMisses   = 3               // looks at which a probe fails
)

// instance is a pod's program.
type instance struct {
	dir       string
	container string
	pod       string         // as a kubelet names it in messages: name_namespace(uid)
	ip        string         // the pod's
	ports     map[int]string // the pod's to an address of this machine
	leads     []func()       // by which the pod's address leads there, until they are called
	missing   bool           // there is no program
	token     time.Time      // until when the token is good
	said      standin.Text

	mu       sync.Mutex
	cmd      *exec.Cmd     // nil: nothing runs
	ended    chan struct{} // closed when it does not any more
	began    time.Time
	last     *corev1.ContainerStateTerminated
	restarts int32
	backOff  time.Duration
	next     time.Time // when it may be started again
	ready    bool
	misses   int
}

// addressed makes the program reachable at the pod's address. That can change: kwok 0.8.0 assigns one each time that it
// plays a stage (pkg/kwok/controllers/pod_controller.go, funcPodIPsWith), and under load it plays the first one twice,
// because it has not yet seen its own write.
func (i *instance) addressed(network *podnet.Network, ip string) error {
	if i.ip == ip {
		return nil
	}
	i.ip = ip
	return i.lead(network)
}

// lead makes the ports at the pod's address lead to the program, and those at an earlier address nowhere.
func (i *instance) lead(network *podnet.Network) error {
	i.release()
	for port, to := range i.ports {
		release, err := network.Lead(i.ip, port, to)
		if err != nil {
			return err
		}
		i.leads = append(i.leads, release)
	}
	return nil
}

// release makes the pod's address lead nowhere.
func (i *instance) release() {
	for _, release := range i.leads {
		release()
	}
	i.leads = nil
}

func (i *instance) running() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cmd != nil
}

// due tells whether it is time to start it, for the first time or again.
func (i *instance) due() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return time.Now().After(i.next)
}

// start runs the program, in a group of its own that the sandbox's leash ends.
func (i *instance) start(program string, args, environment []string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = i.dir
	cmd.Stdout, cmd.Stderr = &i.said, &i.said
	cmd.Env = append(environment, "HOME="+i.dir, "TMPDIR="+i.dir, leash.Variable+"="+os.Getenv(leash.Variable))
	if given := os.Getenv(Variable); given != "" {
		cmd.Env = append(cmd.Env, Variable+"="+given)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.last != nil {
		i.restarts++
	}
	i.cmd, i.began, i.ended, i.ready, i.misses = cmd, time.Now(), make(chan struct{}), false, 0
	go i.wait(cmd, i.ended)
	return nil
}

// wait notes how the program ended.
func (i *instance) wait(cmd *exec.Cmd, ended chan struct{}) {
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has started
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.backOff = min(max(2*i.backOff, firstBackOff), lastBackOff); time.Since(i.began) > 2*lastBackOff {
		i.backOff = firstBackOff
	}
	state := &corev1.ContainerStateTerminated{
		ExitCode: int32(cmd.ProcessState.ExitCode()), Reason: "Completed", StartedAt: metav1.NewTime(i.began),
		FinishedAt: metav1.Now(),
	}
	if err != nil {
		state.Reason = "Error"
	}
	if state.ExitCode < 0 { // by a signal
		state.ExitCode = 137
	}
	i.cmd, i.last, i.ready, i.next = nil, state, false, time.Now().Add(i.backOff)
	close(ended)
}

// kill ends the program at once.
func (i *instance) kill() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cmd != nil {
		_ = syscall.Kill(-i.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// stop tells the program to end, and returns when it has.
func (i *instance) stop(ctx context.Context) {
	i.mu.Lock()
	cmd, ended := i.cmd, i.ended
	i.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, graceful)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
		i.kill()
		<-ended
	}
}

// report is the state of the program. While it waits, the message is that of doBackOff.
func (i *instance) report(ctx context.Context, c *corev1.Container) standin.Report {
	i.mu.Lock()
	runs, restarts := i.cmd != nil, i.restarts
	var last corev1.ContainerState
	if i.last != nil {
		last.Terminated = i.last.DeepCopy()
	}
	backOff := i.backOff
	i.mu.Unlock()
	r := standin.Running(false)
	if runs {
		r.Ready = i.probe(ctx, c)
	} else {
		r.State = corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{
				Reason:  "CrashLoopBackOff",
				Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", backOff, i.container, i.pod),
			},
		}
	}
	r.Last, r.Restarts = last, restarts
	return r
}

// without is a pod whose program this machine does not have.
func (i *instance) without() standin.Report {
	r := standin.Creating()
	r.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerError", Message: noProgram}
	return r
}

// log is what the program has said, with the paths of the container.
func (i *instance) log() string {
	if i.missing {
		return noProgram + "\n"
	}
	return strings.ReplaceAll(i.said.String(), filepath.Join(i.dir, "root"), "")
}

// Variable names the program carrick, where it does not stand beside the sandbox's.
const Variable = "CARRICK_PROGRAM"

const noProgram = "stand-in: there is no program carrick beside carrick-sandbox, and " + Variable +
	" names none: nothing runs in this pod"

// Find returns the program carrick of this machine, and whether there is one.
func Find() (string, bool) {
	self, err := os.Executable()
	if err != nil {
		return "", false
	}
	name := os.Getenv(Variable)
	if name == "" {
		name = filepath.Join(filepath.Dir(self), "carrick")
	}
	if name, err = exec.LookPath(name); err != nil || !filepath.IsAbs(name) {
		return "", false
	}
	theirs, err := os.Stat(name)
	if err != nil {
		return "", false
	}
	ours, err := os.Stat(self)
	return name, err == nil && !os.SameFile(theirs, ours)
}
