package stepstest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/proxy"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/linkfile"
)

// Proof configures the tests of how a guide handles faults and crashes. It extends the configuration of the benchmarks.
type Proof struct {
	Bench
	// Blind lists, by side, the checks whose verdict does not change when the API server of that side fails. Such a check
	// sends no requests to that API server. Verify this before you add a check.
	Blind map[steps.Side][]string
	// Random is a regular expression for text that differs between two runs of this guide. Text that differs for every
	// guide is already covered.
	Random string
	// Theirs reports whether another component created an object of a snapshot in reaction to what the guide sets up. An
	// undo keeps such objects. If Theirs is nil, there are no such objects.
	Theirs func(name string) bool
	// Remade is the kind of object that another user recreates right before carrick deletes it. The default is a Secret.
	Remade *Remade
	// Asked lists questions that the admin must answer if a tenant's object looks like the object from which carrick
	// discovers the answer.
	Asked []string
	// More returns what is stored outside the clusters, by name.
	More func(testing.TB, *clustertest.Sandbox, map[string]any) map[string]string
	// SharedActions is true if other guides have actions of the same kinds and their tests cover faults during apply.
	SharedActions bool
}

// Remade is a kind of object. Before and After are the arguments of kubectl create around the name.
type Remade struct {
	Resource      string // as in a request, such as secrets
	Before, After []string
}

// stage is a carrick program with a separate link and a proxy in front of each API server.
type stage struct {
	Proof
	box     *clustertest.Sandbox
	program string
	way     map[steps.Side]*proxy.Proxy
	answers map[string]any
	dir     string // the only directory to which carrick can write
	link    string
	access  map[steps.Side]kubeconfig.Access
	args    []string // arguments of every command

	files  atomic.Int64                          // changes to files so far
	keeper atomic.Pointer[func(fileChange) bool] // called before each change to a file, unless it is nil
}

const proofLink = "proof"

// stage sets up a stage on the guide's scenario. The test's cleanup restores the clusters and machines.
func (x Proof) stage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
		Proof: x, box: clustertest.Start(t), way: map[steps.Side]*proxy.Proxy{}, access: map[steps.Side]kubeconfig.Access{},
		dir: t.TempDir(),
	}
	s.program = Program(t)
	s.box.Reset(t)
	s.box.Seed(t, x.Guide.Name)
	link := linkfile.New(x.Guide.Name, proofLink)
	link.Path = s.in("link", "proof.yaml")
	s.link = link.Path
	for _, side := range steps.Sides {
		if x.Guide.Sides[side].Kind == steps.Cluster {
			s.way[side] = proxy.New(t, s.box, string(side))
			path, name := s.way[side].Kubeconfig(t)
			s.access[side] = kubeconfig.Access{Kubeconfig: path, Context: name}
		}
		*link.Side(side) = spec(s.box, x.Guide, side, s.access[side])
	}
	s.box.Bystanders(t)
	s.trustBoth(t)
	s.answers = x.Answers(t, s.box, s.box.Open(t, string(ground(x.Guide)), cluster.Options{}).Server())
	secrets := t.TempDir()
	for key, v := range s.answers {
		q, _ := x.Guide.Question(key)
		if !q.Secret {
			link.Answers[key] = v
			continue
		}
		file := filepath.Join(secrets, key)
		if err := os.WriteFile(file, []byte(v.(string)), 0o600); err != nil {
			t.Fatal(err)
		}
		s.args = append(s.args, "--secret", key+"=@"+file)
	}
	for _, dir := range []string{"link", "state", "tmp", "home"} {
		if err := os.MkdirAll(s.in(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := link.Save(); err != nil {
		t.Fatal(err)
	}
	return s
}

// trustBoth adds the CA of the API server to the kubeconfig if the guide connects a machine to a cluster. The machine's
// own requests bypass the proxy, so they need that CA.
func (s *stage) trustBoth(t *testing.T) {
	t.Helper()
	for side, access := range s.access {
		if len(s.access) == len(steps.Sides) {
			return
		}
		k := readKubeconfig(t, access.Kubeconfig)
		k.CA = append(k.CA, readKubeconfig(t, s.box.Kubeconfigs[string(side)]).CA...)
		if err := os.WriteFile(access.Kubeconfig, []byte(k.Bytes().Reveal()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func readKubeconfig(t *testing.T, path string) kubeconfig.Config {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	k, err := kubeconfig.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (s *stage) in(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

type run struct {
	cmd         *exec.Cmd
	stdout, err bytes.Buffer
	began       time.Time
	took        time.Duration
	ended       chan struct{}
	held        atomic.Int64 // the maximum memory in bytes
}

func (s *stage) start(t *testing.T, command ...string) *run {
	t.Helper()
	r := &run{ended: make(chan struct{}), began: time.Now()}
	args := append(append(command[:1:1], s.args...), command[1:]...)
	if command[0] == "apply" && s.TakesOver {
		args = append(args, "--take-over")
	}
	r.cmd = exec.Command(s.program, append(args, s.link)...)
	r.cmd.Dir = s.in("link")
	r.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.in("home"), "TMPDIR=" + s.in("tmp"), "XDG_STATE_HOME=" + s.in("state"),
		"LANG=en_US.UTF-8",
	}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.err
	g := s.gate(t, r.cmd)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if g != nil {
		if err := g.watch(); err != nil {
			t.Fatal(err)
		}
	}
	go r.measure(s.program)
	go func() {
		_ = r.cmd.Wait()
		if g != nil {
			close(g.end)
		}
		r.took = time.Since(r.began)
		close(r.ended)
	}()
	t.Cleanup(r.kill)
	return r
}

// gate returns nil if no side is a machine or the system does not support gates.
func (s *stage) gate(t *testing.T, cmd *exec.Cmd) *gate {
	t.Helper()
	for _, root := range s.box.Hosts {
		if gates() != nil {
			return nil
		}
		g := &gate{root: root, ask: func(c fileChange) bool {
			ask := s.keeper.Load()
			if !c.tidying() && ask != nil && !(*ask)(c) {
				return false
			}
			s.files.Add(1)
			return true
		}}
		if err := g.before(cmd); err != nil {
			t.Fatal(err)
		}
		return g
	}
	return nil
}

// kill kills carrick as a power failure would. It returns when the process has ended.
func (r *run) kill() {
	_ = r.cmd.Process.Kill()
	<-r.ended
}

// code returns the exit code of a run, or -1 if the run was killed. It fails the test if the run does not end in time.
func (r *run) code(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(within):
		r.kill()
		t.Fatalf("%s has not exited after %s\n%s", r, within, r.said())
	}
	if bad := r.forbiddenOutput(); bad != "" {
		t.Errorf("%s: %s\n%s", r, bad, r.said())
	}
	return r.cmd.ProcessState.ExitCode()
}

// forbiddenOutput returns an error message if the output contains something forbidden, such as a panic. Otherwise it
// returns "".
func (r *run) forbiddenOutput() string {
	for _, bad := range []string{"goroutine ", "panic:", "(please report)", "\x1b"} {
		if strings.Contains(r.said(), bad) {
			return fmt.Sprintf("the output contains %q", bad)
		}
	}
	return ""
}

func (r *run) String() string { return strings.Join(r.cmd.Args[1:], " ") }
func (r *run) said() string   { return r.err.String() + r.stdout.String() }

// measure records the maximum memory of carrick while it runs. The kernel's figure for a terminated child is useless,
// because it includes the memory of the parent at the fork. The parent is this test process, which generates large
// response bodies.
func (r *run) measure(program string) {
	proc := fmt.Sprintf("/proc/%d/", r.cmd.Process.Pid)
	for {
		exe, _ := os.Readlink(proc + "exe") // before exec, the process is not carrick yet
		status, _ := os.ReadFile(proc + "status")
		if m := highWater.FindSubmatch(status); m != nil && filepath.Base(exe) == filepath.Base(program) {
			kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
			r.held.Store(kb << 10)
		}
		select {
		case <-r.ended:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var highWater = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peak returns the maximum memory in bytes, as far as the system reports it.
func (r *run) peak() int64 { return r.held.Load() }
