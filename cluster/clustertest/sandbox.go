// Package clustertest gives each test two real control planes of its own: those of a sandbox
// program, lent to the test and reset after it.
package clustertest

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
)

// Environment variables: Program holds the path of carrick-sandbox. Socket is the address of a
// pool of sandboxes that all test binaries of a run share (package share); without it each test
// binary has one sandbox.
const (
	Program = "CARRICK_SANDBOX"
	Socket  = "CARRICK_SANDBOX_SOCKET"
)

// The first word that a borrower sends to a pool: it asks for a sandbox, or for the room to start one itself. The rest
// of the line says who the borrower is.
const (
	AskSandbox = "sandbox"
	AskRoom    = "room"
)

// Names of the two sides, as the sandbox calls them.
const (
	Local  = "local"
	Remote = "remote"
)

// Sandbox is two real control planes that one test and its subtests have for themselves.
type Sandbox struct {
	Dir         string            // everything it wrote; removed at its end
	Kubeconfigs map[string]string // paths, by side
	Contexts    map[string]string // names, by side
	Kubectl     string            // path of a kubectl
	Version     string            // of both API servers

	// Hosts are the folders of sides that are machines, by side, and Here those of them that have this machine's network;
	// Answers what a guide has to be told, and Given those of the answers that a link of the demo begins with: of the
	// scenario that was seeded last.
	Hosts   map[string]string
	Here    map[string]bool
	Answers map[string]string
	Given   map[string]string

	ready string     // the line that says where it is
	mu    sync.Mutex // one command at a time
	ask   func(command string) (string, error)
}

// lent are the sandboxes of this test binary, by the name of the test that has each, and the pool that they come from
// where no other program has one.
var lent struct {
	mu   sync.Mutex
	box  map[string]*Sandbox
	own  *Pool
	once sync.Once
}

// Start lends the test a sandbox until its end. Subtests of a test that has one get the same. It skips the test when
// CARRICK_SANDBOX is not set, and fails it when no sandbox starts. Sandboxes end with the test run, however that ends.
//
// Tests that wait for a sandbox count as running for go test's -parallel. Where that limit is lower than their number,
// parallel subtests of a test that has a sandbox may never start; hence the -parallel of the Makefile.
func Start(tb testing.TB) *Sandbox {
	tb.Helper()
	program := os.Getenv(Program)
	if program == "" {
		tb.Skipf("%s is not set: it is the path of carrick-sandbox (make sandbox)", Program)
	}
	if s := held(tb.Name()); s != nil {
		return s
	}
	s, back, err := borrow(program, tb.Name())
	if err != nil {
		if back != nil {
			back()
		}
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

// Another starts a sandbox of the test's own next to the one that Start lends it, and ends it with the test. It takes
// no room in the pool: a test that waits for a second sandbox while it has one would keep others waiting, too.
func Another(tb testing.TB) *Sandbox {
	tb.Helper()
	program := os.Getenv(Program)
	if program == "" {
		tb.Skipf("%s is not set: it is the path of carrick-sandbox (make sandbox)", Program)
	}
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

// Room waits until the pool has room for a sandbox that the test starts itself, and holds the room until the test ends.
// It skips the test when CARRICK_SANDBOX is not set.
func Room(tb testing.TB) {
	tb.Helper()
	if os.Getenv(Program) == "" {
		tb.Skipf("%s is not set: it is the path of carrick-sandbox (make sandbox)", Program)
	}
	address := os.Getenv(Socket)
	if address == "" {
		return
	}
	conn, _, err := ask(address, AskRoom, tb.Name())
	if err != nil {
		tb.Fatalf("wait for room for a sandbox: %v", err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
}

// held returns the sandbox that a test or one of those that it is a subtest of has, or nil.
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

// borrow returns a sandbox and the function that gives it back, which is not nil if there is something to give back
// after an error.
func borrow(program, name string) (s *Sandbox, back func(), err error) {
	if address := os.Getenv(Socket); address != "" {
		return join(address, name)
	}
	lent.once.Do(func() { lent.own = NewPool(program, 1, os.Stderr) })
	box, err := lent.own.Take()
	if err != nil {
		return nil, nil, err
	}
	s = &Sandbox{ask: box.Ask}
	return s, func() { lent.own.Give(box) }, s.greet(box.Ready)
}

// ask sends a first line to the pool at an address and returns its answer, which comes when the pool has what was asked
// for.
func ask(address, what, name string) (conn net.Conn, answer *bufio.Reader, err error) {
	if conn, err = net.Dial("unix", address); err != nil {
		return nil, nil, err
	}
	answer = bufio.NewReader(conn)
	if _, err = fmt.Fprintln(conn, what, filepath.Base(os.Args[0]), name); err == nil {
		_, err = answer.Peek(1)
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, answer, nil
}

// join borrows a sandbox from the pool at an address, which takes it back when the connection ends.
func join(address, name string) (s *Sandbox, back func(), err error) {
	conn, replies, err := ask(address, AskSandbox, name)
	if err != nil {
		return nil, nil, err
	}
	ready, err := replies.ReadString('\n')
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	s = &Sandbox{ask: func(command string) (string, error) {
		if _, err := io.WriteString(conn, command+"\n"); err != nil {
			return "", err
		}
		return replies.ReadString('\n')
	}}
	return s, func() { _ = conn.Close() }, s.greet(ready)
}

// greet reads the line that says that the sandbox is ready, and where it is.
func (s *Sandbox) greet(line string) error {
	var ready struct {
		Ready       bool
		Error       string
		Dir         string
		Kubeconfigs map[string]string
		Contexts    map[string]string
		Kubectl     string
		Version     string
	}
	if err := json.Unmarshal([]byte(line), &ready); err != nil {
		return fmt.Errorf("read %q: %w", line, err)
	}
	if !ready.Ready {
		return errors.New("it is not ready: " + ready.Error)
	}
	s.ready = line
	s.Dir, s.Kubeconfigs, s.Contexts = ready.Dir, ready.Kubeconfigs, ready.Contexts
	s.Kubectl, s.Version = ready.Kubectl, ready.Version
	return nil
}

// Open returns the cluster of a side, seen by its admin, and closes it with the
// test.
func (s *Sandbox) Open(tb testing.TB, side string, o cluster.Options) *cluster.Cluster {
	tb.Helper()
	c, err := cluster.Open(kubeconfig.Access{Kubeconfig: s.Kubeconfigs[side], Context: s.Contexts[side]}, o)
	if err != nil {
		tb.Fatalf("open %s: %v", side, err)
	}
	tb.Cleanup(c.Close)
	return c
}

// Stop stops the API server of a side. It is started again with the end of the
// test, at the latest.
func (s *Sandbox) Stop(tb testing.TB, side string) {
	tb.Helper()
	s.command(tb, "stop "+side)
	tb.Cleanup(func() { s.command(tb, "start "+side) })
}

// Start starts the API server of a side that was stopped, and returns when it
// is ready. Of one that runs it does nothing.
func (s *Sandbox) Start(tb testing.TB, side string) {
	tb.Helper()
	s.command(tb, "start "+side)
}

// Seed puts the objects of a scenario into both sides.
func (s *Sandbox) Seed(tb testing.TB, scenario string) {
	tb.Helper()
	s.seeded(s.command(tb, "seed "+scenario))
}

func (s *Sandbox) seeded(got reply) {
	s.Hosts, s.Here, s.Answers, s.Given = got.Hosts, got.Here, got.Answers, got.Given
}

// SeedFault puts the objects of a scenario into both sides, with something
// wrong on top: one of what the sandbox answers to "faults SCENARIO". Whatever
// stands in the clusters is removed at the end of the test.
func (s *Sandbox) SeedFault(tb testing.TB, scenario, fault string) {
	tb.Helper()
	s.Reset(tb)
	s.seeded(s.command(tb, "seed "+scenario+" "+fault))
}

// Reset brings both sides back to what they were when the sandbox got ready, at the end of the test. It is for
// subtests: at the end of the test that the sandbox is lent to, that happens anyway.
func (s *Sandbox) Reset(tb testing.TB) {
	tb.Helper()
	lent.mu.Lock()
	defer lent.mu.Unlock()
	if lent.box[tb.Name()] != s {
		tb.Cleanup(func() { s.command(tb, "reset") })
	}
}

// Settle waits until no namespace of a side is being deleted.
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

// Run runs kubectl against a side, with in as its standard input, and returns
// its output. It fails the test when kubectl fails.
func (s *Sandbox) Run(tb testing.TB, side, in string, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(
		tb.Context(), s.Kubectl,
		append([]string{"--kubeconfig", s.Kubeconfigs[side], "--context", s.Contexts[side]}, args...)...,
	)
	cmd.Stdin = strings.NewReader(in)
	cmd.Env = append(os.Environ(), "GOGC=off") // a quarter less of a processor, for a program that lives 80 ms
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		tb.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// Bystanders puts two Secrets of somebody else into each cluster: a secret that is
// nobody's business here is one, too, also where a guide has none of its own.
func (s *Sandbox) Bystanders(tb testing.TB) {
	tb.Helper()
	for _, side := range []string{Local, Remote} {
		for _, name := range []string{"bystander", "another"} {
			s.Run(tb, side, "", "-n", "default", "create", "secret", "generic", name, "--from-literal=password="+rand.Text())
		}
	}
}

// Cleanup runs kubectl against a side when the test ends; what it says counts
// for nothing.
func (s *Sandbox) Cleanup(tb testing.TB, side string, args ...string) {
	tb.Cleanup(func() {
		_ = exec.Command(
			s.Kubectl, append([]string{"--kubeconfig", s.Kubeconfigs[side], "--context", s.Contexts[side]}, args...)...,
		).Run()
	})
}

// Faults are what can be wrong in a scenario: name to one sentence.
func (s *Sandbox) Faults(tb testing.TB, scenario string) map[string]string {
	tb.Helper()
	out := map[string]string{}
	for _, f := range s.command(tb, "faults "+scenario).Faults {
		out[f.Name] = f.Title
	}
	return out
}

// reply is the sandbox's answer to a command.
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
		tb.Fatalf("tell the sandbox to %s: %v", line, err)
	}
	return got
}
