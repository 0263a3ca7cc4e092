// Package clustertest gives tests two real control planes: those of the
// sandbox program, started once for each test binary and ended with it.
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
	"strings"
	"sync"
	"testing"
	"time"

	"carrick/cluster"
)

// Environment variables: Program holds the path of carrick-sandbox, Socket the
// address of one that runs already, shared by all test binaries of a run (see
// package share).
const (
	Program = "CARRICK_SANDBOX"
	Socket  = "CARRICK_SANDBOX_SOCKET"
)

// Names of the two sides, as the sandbox calls them.
const (
	Local  = "local"
	Remote = "remote"
)

const (
	startWithin  = 4 * time.Minute
	answerWithin = 3 * time.Minute
)

// Sandbox is two real control planes that run. They are shared by the tests of
// one binary: a test uses namespaces and names of its own.
type Sandbox struct {
	Dir         string            // everything it wrote; removed at its end
	Kubeconfigs map[string]string // paths, by side
	Contexts    map[string]string // names, by side
	Kubectl     string            // path of a kubectl
	Version     string            // of both API servers

	// Hosts are the folders of sides that are machines, by side, and Here those of them that have this machine's network;
	// Answers what a guide has to be told: of the scenario that was seeded last.
	Hosts   map[string]string
	Here    map[string]bool
	Answers map[string]string

	mu     sync.Mutex // one command at a time
	in     io.Writer
	out    *bufio.Reader
	pipe   deadliner
	stderr *os.File
}

type deadliner interface{ SetReadDeadline(time.Time) error }

// shared is the sandbox of this test binary.
var shared struct {
	once sync.Once
	*Sandbox
	err error
}

// Start returns the sandbox of this test binary, and starts it at the first
// call. It skips the test when CARRICK_SANDBOX is not set, and fails it when the
// sandbox does not start. The sandbox ends when its standard input does: with
// the test binary, however that ends.
func Start(tb testing.TB) *Sandbox {
	tb.Helper()
	program := os.Getenv(Program)
	if program == "" {
		tb.Skipf("%s is not set: it is the path of carrick-sandbox (make sandbox)", Program)
	}
	shared.once.Do(func() {
		if address := os.Getenv(Socket); address != "" {
			shared.Sandbox, shared.err = join(address)
		} else {
			shared.Sandbox, shared.err = start(program)
		}
	})
	if shared.err != nil {
		tb.Fatalf("start the sandbox: %v", shared.err)
	}
	return shared.Sandbox
}

func start(program string) (*Sandbox, error) {
	stderr, err := os.CreateTemp("", "carrick-sandbox-*.log")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(stderr.Name()) // it lives on for as long as it is open
	cmd := exec.Command(program)
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Sandbox{in: in, out: bufio.NewReader(out), stderr: stderr}
	s.pipe, _ = out.(deadliner)
	if err := s.greet(); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("%w\n%s", errors.Join(err, cmd.Wait()), s.said())
	}
	return s, nil
}

// join uses a sandbox that runs already.
func join(address string) (*Sandbox, error) {
	conn, err := net.Dial("unix", address)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{in: conn, out: bufio.NewReader(conn), pipe: conn}
	return s, s.greet()
}

// greet reads the line that says that the sandbox is ready, and where it is.
func (s *Sandbox) greet() error {
	var ready struct {
		Ready       bool
		Dir         string
		Kubeconfigs map[string]string
		Contexts    map[string]string
		Kubectl     string
		Version     string
	}
	if err := s.receive(startWithin, &ready); err != nil {
		return err
	}
	if !ready.Ready {
		return errors.New("it is not ready")
	}
	s.Dir, s.Kubeconfigs, s.Contexts = ready.Dir, ready.Kubeconfigs, ready.Contexts
	s.Kubectl, s.Version = ready.Kubectl, ready.Version
	return nil
}

// Open returns the cluster of a side, seen by its admin, and closes it with the
// test.
func (s *Sandbox) Open(tb testing.TB, side string, o cluster.Options) *cluster.Cluster {
	tb.Helper()
	c, err := cluster.Open(cluster.Access{Kubeconfig: s.Kubeconfigs[side], Context: s.Contexts[side]}, o)
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

func (s *Sandbox) seeded(got reply) { s.Hosts, s.Here, s.Answers = got.Hosts, got.Here, got.Answers }

// SeedFault puts the objects of a scenario into both sides, with something
// wrong on top: one of what the sandbox answers to "faults SCENARIO". Whatever
// stands in the clusters is removed at the end of the test.
func (s *Sandbox) SeedFault(tb testing.TB, scenario, fault string) {
	tb.Helper()
	s.Reset(tb)
	s.seeded(s.command(tb, "seed "+scenario+" "+fault))
}

// Reset brings both sides back to what they were when the sandbox got ready, at
// the end of the test.
func (s *Sandbox) Reset(tb testing.TB) {
	tb.Helper()
	tb.Cleanup(func() { s.command(tb, "reset") })
}

// Settle waits until no namespace of a side is being deleted.
func (s *Sandbox) Settle(tb testing.TB, side string) {
	tb.Helper()
	going := s.Run(tb, side, "", "get", "namespaces", "-o", `go-template={{range .items}}{{if .metadata.deletionTimestamp}}namespace/{{.metadata.name}} {{end}}{{end}}`)
	if names := strings.Fields(going); len(names) > 0 {
		s.Run(tb, side, "", append([]string{"wait", "--for=delete", "--timeout=60s"}, names...)...)
	}
}

// Run runs kubectl against a side, with in as its standard input, and returns
// its output. It fails the test when kubectl fails.
func (s *Sandbox) Run(tb testing.TB, side, in string, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), s.Kubectl, append([]string{"--kubeconfig", s.Kubeconfigs[side], "--context", s.Contexts[side]}, args...)...)
	cmd.Stdin = strings.NewReader(in)
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
		_ = exec.Command(s.Kubectl, append([]string{"--kubeconfig", s.Kubeconfigs[side], "--context", s.Contexts[side]}, args...)...).Run()
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

	Hosts, Answers map[string]string
	Here           map[string]bool
}

func (s *Sandbox) command(tb testing.TB, line string) reply {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		tb.Fatalf("tell the sandbox to %s: %v\n%s", line, err, s.said())
	}
	var got reply
	if err := s.receive(answerWithin, &got); err != nil {
		tb.Fatalf("tell the sandbox to %s: %v\n%s", line, err, s.said())
	}
	if !got.OK {
		tb.Fatalf("tell the sandbox to %s: %s", line, got.Error)
	}
	return got
}

// receive reads one line of JSON.
func (s *Sandbox) receive(within time.Duration, into any) error {
	if s.pipe != nil {
		_ = s.pipe.SetReadDeadline(time.Now().Add(within))
	}
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	return json.Unmarshal(line, into)
}

// said is the end of what the sandbox wrote to standard error.
func (s *Sandbox) said() string {
	if s.stderr == nil {
		return ""
	}
	info, err := s.stderr.Stat()
	if err != nil {
		return ""
	}
	const most = 4 << 10
	text := make([]byte, min(info.Size(), most))
	_, _ = s.stderr.ReadAt(text, info.Size()-int64(len(text)))
	return string(text)
}
