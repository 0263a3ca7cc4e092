// Package clustertest gives each test exclusive use of two real control planes. A sandbox process runs them. The test
// borrows the process, which is reset when the test ends.
package clustertest

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
)

// Names of environment variables. Program contains the path of the carrick-sandbox binary. Socket contains the address
// of a pool of sandboxes that all test binaries of a run share (command share). Without Socket, each test binary has
// one sandbox.
const (
	Program = "CARRICK_SANDBOX"
	Socket  = "CARRICK_SANDBOX_SOCKET"
)

// Names of the two sides in the sandbox.
const (
	Local  = "local"
	Remote = "remote"
)

// Sandbox represents two real control planes for the exclusive use of one test and its subtests.
type Sandbox struct {
	Dir         string            // directory with all files of the sandbox; removed when the sandbox stops
	Kubeconfigs map[string]string // paths, by side
	Contexts    map[string]string // names, by side
	Kubectl     string            // path of a kubectl
	Version     string            // version of both API servers

	// Hosts maps the sides that are machines to their directories. Here contains the sides that share this machine's
	// network. Answers contains the answers that the guide requires. Given contains the answers with which a demo link
	// starts. All four come from the scenario that was seeded last.
	Hosts   map[string]string
	Here    map[string]bool
	Answers map[string]string
	Given   map[string]string

	kubectlSocket string // where the sandbox process runs kubectl itself; "" if it does not

	ready string     // the line that describes the sandbox
	mu    sync.Mutex // allows one command at a time
	ask   func(command string) (string, error)
}

// lent contains the borrowed sandboxes of this test binary, by test name. own is the pool of this process. It is used
// only if no other process provides a pool.
var lent struct {
	mu   sync.Mutex
	box  map[string]*Sandbox
	own  *Pool
	once sync.Once
}

// Start lends the test a sandbox until the test ends. Subtests share the sandbox of their parent. Start skips the test
// if CARRICK_SANDBOX is not set, and fails the test if no sandbox starts. After CARRICK_UNTIL it skips the test and
// records that the test did not run. Sandboxes stop with the test run, even if it crashes.
//
// A test that waits for a sandbox counts against go test's -parallel. If -parallel is lower than the number of such
// tests, parallel subtests of a test that has a sandbox might never start. The Makefile therefore sets -parallel.
func Start(tb testing.TB) *Sandbox {
	tb.Helper()
	program := programOrSkip(tb)
	if s := held(tb.Name()); s != nil {
		return s
	}
	s, back, err := borrow(program, tb.Name())
	if err != nil {
		if back != nil {
			back()
		}
		skipLate(tb, err)
		tb.Fatalf("start the sandbox: %v", err)
	}
	name := tb.Name()
	lent.mu.Lock()
	defer lent.mu.Unlock()
	if lent.box == nil {
		lent.box = map[string]*Sandbox{}
	}
	lent.box[name] = s
	tb.Cleanup(func() {
		lent.mu.Lock()
		delete(lent.box, name)
		lent.mu.Unlock()
		back()
	})
	return s
}

// programOrSkip returns the path of the sandbox binary. It skips the test if CARRICK_SANDBOX is not set.
func programOrSkip(tb testing.TB) string {
	tb.Helper()
	program := os.Getenv(Program)
	if program == "" {
		tb.Skipf("%s is not set; set it to the path of carrick-sandbox (make sandbox)", Program)
	}
	return program
}

// Another starts a second sandbox for the test, in addition to the one from Start, and stops it when the test ends. It
// does not count against the pool's size. Otherwise tests that use one sandbox and wait for a second one could
// deadlock.
func Another(tb testing.TB) *Sandbox {
	tb.Helper()
	program := programOrSkip(tb)
	box, err := startBox(program)
	if err != nil {
		tb.Fatalf("start another sandbox: %v", err)
	}
	tb.Cleanup(func() { _ = box.end() })
	s := &Sandbox{ask: box.Ask}
	if err := s.greet(box.Ready); err != nil {
		tb.Fatal(err)
	}
	return s
}

// Room waits until the pool has capacity for a sandbox that the test starts itself, and reserves it until the test
// ends. It skips the test if CARRICK_SANDBOX is not set, and after CARRICK_UNTIL as Start does.
func Room(tb testing.TB) {
	tb.Helper()
	programOrSkip(tb)
	address := os.Getenv(Socket)
	if address == "" {
		return
	}
	conn, _, err := ask(address, AskRoom, tb.Name())
	if err != nil {
		skipLate(tb, err)
		tb.Fatalf("wait for room for a sandbox: %v", err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
}

// held returns the sandbox that a test or one of its parents has borrowed, or nil.
func held(name string) *Sandbox {
	lent.mu.Lock()
	defer lent.mu.Unlock()
	for {
		if s := lent.box[name]; s != nil {
			return s
		}
		last := strings.LastIndexByte(name, '/')
		if last < 0 {
			return nil
		}
		name = name[:last]
	}
}

// greet parses the line in which the sandbox process describes its clusters.
func (s *Sandbox) greet(line string) error {
	var ready struct {
		Ready       bool
		Error       string
		Dir         string
		Kubeconfigs map[string]string
		Contexts    map[string]string
		Kubectl     string
		Version     string

		KubectlSocket string
	}
	if err := json.Unmarshal([]byte(line), &ready); err != nil {
		return fmt.Errorf("read %q: %w", line, err)
	}
	if !ready.Ready {
		return errors.New("the sandbox is not ready: " + ready.Error)
	}
	s.ready = line
	s.Dir, s.Kubeconfigs, s.Contexts = ready.Dir, ready.Kubeconfigs, ready.Contexts
	s.Kubectl, s.kubectlSocket, s.Version = ready.Kubectl, ready.KubectlSocket, ready.Version
	return nil
}

// Open returns the cluster of a side with its admin's credentials, and closes it when the test ends.
func (s *Sandbox) Open(tb testing.TB, side string, o cluster.Options) *cluster.Cluster {
	tb.Helper()
	c, err := cluster.Open(kubeconfig.Access{Kubeconfig: s.Kubeconfigs[side], Context: s.Contexts[side]}, o)
	if err != nil {
		tb.Fatalf("open %s: %v", side, err)
	}
	tb.Cleanup(c.Close)
	return c
}

// Stop stops the API server of a side. When the test ends, the API server is started again.
func (s *Sandbox) Stop(tb testing.TB, side string) {
	tb.Helper()
	s.command(tb, "stop "+side)
	tb.Cleanup(func() { s.command(tb, "start "+side) })
}

// Start starts the stopped API server of a side, and returns when it is ready. If it is running, Start does nothing.
func (s *Sandbox) Start(tb testing.TB, side string) {
	tb.Helper()
	s.command(tb, "start "+side)
}

// Seed creates the objects of a scenario on both sides.
func (s *Sandbox) Seed(tb testing.TB, scenario string) {
	tb.Helper()
	s.seeded(s.command(tb, "seed "+scenario))
}

func (s *Sandbox) seeded(got reply) {
	s.Hosts, s.Here, s.Answers, s.Given = got.Hosts, got.Here, got.Answers, got.Given
}

// SeedFault creates the objects of a scenario on both sides and injects a fault. The sandbox's command "faults
// SCENARIO" lists the faults. When the test ends, both clusters are reset.
func (s *Sandbox) SeedFault(tb testing.TB, scenario, fault string) {
	tb.Helper()
	s.Reset(tb)
	s.seeded(s.command(tb, "seed "+scenario+" "+fault))
}

// Reset resets both sides to their initial state when the test ends. Only subtests need it, because the sandbox is
// always reset when the test that borrowed it ends.
func (s *Sandbox) Reset(tb testing.TB) {
	tb.Helper()
	lent.mu.Lock()
	defer lent.mu.Unlock()
	if lent.box[tb.Name()] != s {
		tb.Cleanup(func() { s.command(tb, "reset") })
	}
}

// Settle waits until no namespace of a side is terminating.
func (s *Sandbox) Settle(tb testing.TB, side string) {
	tb.Helper()
	going := s.Run(
		tb, side, "", "get", "namespaces", "-o",
		`go-template={{range .items}}{{if .metadata.deletionTimestamp}}namespace/{{.metadata.name}} {{end}}{{end}}`,
	)
	if names := strings.Fields(going); len(names) > 0 {
		s.Run(tb, side, "", append([]string{"wait", "--for=delete", "--timeout=300s"}, names...)...)
	}
}

// Bystanders creates two unrelated Secrets in each cluster. Tests can then verify that carrick does not reveal secrets,
// even with a guide that creates none itself.
func (s *Sandbox) Bystanders(tb testing.TB) {
	tb.Helper()
	for _, side := range []string{Local, Remote} {
		for _, name := range []string{"bystander", "another"} {
			s.Run(tb, side, "", "-n", "default", "create", "secret", "generic", name, "--from-literal=password="+rand.Text())
		}
	}
}

// Faults returns the faults of a scenario. It maps their names to one-sentence descriptions.
func (s *Sandbox) Faults(tb testing.TB, scenario string) map[string]string {
	tb.Helper()
	out := map[string]string{}
	for _, f := range s.command(tb, "faults "+scenario).Faults {
		out[f.Name] = f.Title
	}
	return out
}

type reply struct {
	OK     bool
	Error  string
	Faults []struct{ Name, Title string }

	Hosts, Answers, Given map[string]string
	Here                  map[string]bool
}

func (s *Sandbox) command(tb testing.TB, line string) reply {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, err := s.ask(line)
	var got reply
	if err == nil {
		err = json.Unmarshal([]byte(answer), &got)
	}
	if err == nil && !got.OK {
		err = errors.New(got.Error)
	}
	if err != nil {
		tb.Fatalf("send the command %s to the sandbox: %v", line, err)
	}
	return got
}
