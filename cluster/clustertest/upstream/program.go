package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"carrick/cluster/clustertest"
)

// Runner runs the binaries of one side's Deployments on this machine. Each binary gets a token of its ServiceAccount
// and the arguments of its container. The Deployments' pods are fake: nothing runs in them.
type Runner struct {
	Box  *clustertest.Sandbox
	Side string
	Bin  string // directory with the binaries
	// More maps a binary to arguments that are added to its container's arguments, such as ports that are free on this
	// machine. An added flag replaces the container's argument for the same flag.
	More map[string][]string
	// Env contains the values of environment variables that the container gets from another object (valueFrom), by name.
	Env map[string]string
	// Container is the name of the container whose program runs; "" means the first container.
	Container string
	// In is the network namespace in which the binary runs; nil means this machine's.
	In *Network
}

// Program is a running binary. It stops when the test ends or End is called.
type Program struct {
	Dir string // the program's TMPDIR

	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	log    bytes.Buffer
	now    *os.Process
}

// Write records the program's output.
func (p *Program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *Program) runs(now *os.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// Tail returns the last 6000 bytes of the program's output.
func (p *Program) Tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.log.Bytes()
	return string(b[max(0, len(b)-6000):])
}

// Restart kills the process. The runner then starts it again.
func (p *Program) Restart(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		t.Fatal("the program is not running")
	}
	if err := p.now.Kill(); err != nil {
		t.Fatal(err)
	}
}

// End stops the process and waits until it has exited.
func (p *Program) End() {
	p.cancel()
	<-p.done
}

// Deployment is like Start, but fails the test on an error.
func (r Runner) Deployment(t testing.TB, namespace, name string, prepare func(dir string)) *Program {
	t.Helper()
	p, err := r.Start(t, namespace, name, prepare)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Kubectl runs kubectl against the side, and returns its output.
func (r Runner) Kubectl(ctx context.Context, args ...string) (string, error) {
	at := []string{"--kubeconfig", r.Box.Kubeconfigs[r.Side], "--context", r.Box.Contexts[r.Side]}
	cmd := exec.CommandContext(ctx, r.Box.Kubectl, append(at, args...)...)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// Start runs the binary of a Deployment's container until the test ends. If the process exits, it is restarted, as by
// the kubelet. prepare can create files in the program's TMPDIR before the program starts. Start can be called from any
// goroutine.
func (r Runner) Start(t testing.TB, namespace, name string, prepare func(dir string)) (*Program, error) {
	var d appsv1.Deployment
	text, err := r.Kubectl(t.Context(), "-n", namespace, "get", "deployment", name, "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(text), &d)
	}
	if err != nil {
		return nil, fmt.Errorf("Deployment %s/%s: %w", namespace, name, err)
	}
	pod := d.Spec.Template.Spec
	named := func(c corev1.Container) bool { return c.Name == r.Container }
	c := pod.Containers[max(0, slices.IndexFunc(pod.Containers, named))]
	program := c.Name // the Deployment does not contain the image's entry point
	if len(c.Command) > 0 {
		program = filepath.Base(c.Command[0])
	}
	p := &Program{Dir: t.TempDir(), done: make(chan struct{})}
	if prepare != nil {
		prepare(p.Dir)
	}
	config, err := r.kubeconfig(t.Context(), p.Dir, namespace, pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	env := append(os.Environ(), "TMPDIR="+p.Dir, "KUBECONFIG="+config)
	known := map[string]string{}
	for _, v := range c.Env {
		known[v.Name] = r.value(v, namespace, name)
		env = append(env, v.Name+"="+known[v.Name])
	}
	var args []string
	for _, a := range c.Args {
		for name, value := range known {
			a = strings.ReplaceAll(a, "$("+name+")", value)
		}
		args = append(args, a)
	}
	for _, more := range r.More[program] {
		flag, _, _ := strings.Cut(more, "=")
		args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, flag+"=") })
		args = append(args, more)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		runtime.LockOSThread() // the kernel sends Pdeathsig when the thread that started the program exits
		for ctx.Err() == nil {
			cmd := r.In.command(ctx, filepath.Join(r.Bin, program), args)
			cmd.Env, cmd.Stdout, cmd.Stderr = env, p, p
			diesWithTest(cmd)
			if err := cmd.Start(); err != nil {
				fmt.Fprintln(p, err)
			} else {
				p.runs(cmd.Process)
				_ = cmd.Wait()
				p.runs(nil)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second): // the program's dependencies might not exist yet
			}
		}
	}()
	t.Cleanup(func() {
		p.End()
		if t.Failed() {
			t.Logf("last output of %s of %s:\n%s", program, r.Side, p.Tail())
		}
	})
	return p, nil
}

func (r Runner) value(v corev1.EnvVar, namespace, deployment string) string {
	if value, ok := r.Env[v.Name]; ok || v.ValueFrom == nil {
		return cmp.Or(value, v.Value)
	}
	if v.ValueFrom.FieldRef != nil {
		switch v.ValueFrom.FieldRef.FieldPath {
		case "metadata.namespace":
			return namespace
		case "metadata.name":
			return deployment + "-0"
		case "status.podIP":
			return "127.0.0.1"
		}
	}
	return ""
}

// kubeconfig writes a kubeconfig with a token for the given ServiceAccount.
func (r Runner) kubeconfig(ctx context.Context, dir, namespace, account string) (string, error) {
	admin, err := clientcmd.LoadFromFile(r.Box.Kubeconfigs[r.Side])
	if err != nil {
		return "", err
	}
	token, err := r.Kubectl(ctx, "-n", namespace, "create", "token", account, "--duration", "3h")
	if err != nil {
		return "", fmt.Errorf("token of ServiceAccount %s/%s: %w", namespace, account, err)
	}
	at := admin.Contexts[r.Box.Contexts[r.Side]]
	config := clientapi.NewConfig()
	config.Clusters["c"] = admin.Clusters[at.Cluster]
	config.AuthInfos["u"] = &clientapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(dir, "kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
