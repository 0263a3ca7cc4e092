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
	graceful     = 8 * time.Second // between SIGTERM and SIGKILL
	manyMisses   = 3               // consecutive failures until a pod is not ready
)

// instance is the program of one pod.
type instance struct {
	dir       string
	container string
	pod       string         // name_namespace(uid), as in a kubelet's messages
	ip        string         // IP address of the pod
	ports     map[int]string // pod port to address on this machine
	leads     []func()       // each function releases one forwarded port
	missing   bool           // this machine does not have carrick
	token     time.Time      // expiry of the token
	said      standin.Text

	mu       sync.Mutex
	cmd      *exec.Cmd     // nil if not running
	ended    chan struct{} // closed when the process has exited
	began    time.Time
	last     *corev1.ContainerStateTerminated
	restarts int32
	backOff  time.Duration
	next     time.Time // earliest time of the next start
	ready    bool
	misses   int
}

// addressed forwards the pod's address to the program. The address can change, because kwok 0.8.0 assigns a new one
// whenever it applies a stage (pkg/kwok/controllers/pod_controller.go, funcPodIPsWith). Under load, kwok applies the
// first stage twice, because it has not observed its own write yet.
func (i *instance) addressed(network *podnet.Network, ip string) error {
	if i.ip == ip {
		return nil
	}
	i.ip = ip
	return i.lead(network)
}

// lead forwards the ports of the pod's current address. It releases the ports of the previous address.
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

// release stops forwarding.
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

// due reports whether a start or restart is due.
func (i *instance) due() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return time.Now().After(i.next)
}

// start starts the program in its own process group, which is killed when the sandbox exits.
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

// wait waits until the program exits and records its exit status.
func (i *instance) wait(cmd *exec.Cmd, ended chan struct{}) {
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // child processes of the program
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
	if state.ExitCode < 0 { // ended by a signal
		state.ExitCode = 137
	}
	i.cmd, i.last, i.ready, i.next = nil, state, false, time.Now().Add(i.backOff)
	close(ended)
}

func (i *instance) kill() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cmd != nil {
		_ = syscall.Kill(-i.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// stop sends SIGTERM and waits until the program has exited.
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

// report returns the state of the program. During a back-off, the message is the same as that of the kubelet's
// doBackOff.
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

// without returns the report for a machine without carrick.
func (i *instance) without() standin.Report {
	r := standin.Creating()
	r.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerError", Message: noProgram}
	return r
}

// log returns the program's output with the container's paths.
func (i *instance) log() string {
	if i.missing {
		return noProgram + "\n"
	}
	return strings.ReplaceAll(i.said.String(), filepath.Join(i.dir, "root"), "")
}

// Variable is the environment variable with the path of carrick. It is required only if carrick is not in the same
// directory as carrick-sandbox.
const Variable = "CARRICK_PROGRAM"

const noProgram = "stand-in: the binary carrick does not exist next to carrick-sandbox, and " + Variable +
	" is not set: nothing runs in this pod"

// Find returns the path of carrick on this machine. It returns false if carrick does not exist.
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
