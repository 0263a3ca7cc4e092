package livetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	startWithin = 3 * time.Minute
	happens     = time.Minute     // what controllers do
	gone        = 5 * time.Second // how long the remains of a sandbox may be seen
	lookEvery   = 50 * time.Millisecond
)

var (
	program string   // carrick-sandbox
	shared  *sandbox // for the tests that leave it running
)

// programVariable is the environment variable with the path of the program that the sandbox runs instead of carrick's
// extension.
const programVariable = "CARRICK_PROGRAM"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == extensionCommand {
		os.Exit(extend(os.Args[2:]))
	}
	if os.Getenv(holderVariable) != "" {
		os.Exit(hold())
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	folder, err := os.MkdirTemp("", "livetest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if program = os.Getenv("CARRICK_SANDBOX"); program == "" {
		program = filepath.Join(folder, "carrick-sandbox")
		build := exec.Command("make", "-C", "..", "OUT="+program, "SANDBOX_ASSETS=")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the sandbox: %v\n%s", err, out)
			return 1
		}
	}
	self, err := os.Executable()
	if err := errors.Join(
		err, os.Setenv("CARRICK_SANDBOX_WATCH_CUT", "2s"), os.Setenv(programVariable, self),
	); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if shared, err = start(exec.Command(program)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.end(); err != nil {
		fmt.Fprintf(os.Stderr, "the shared sandbox: %v\n%s", err, shared.progress.String())
		return 1
	}
	return code
}

// sandbox is a running sandbox.
type sandbox struct {
	Ready       bool
	Dir         string
	Kubeconfigs map[string]string
	Contexts    map[string]string
	Kubectl     string
	Version     string

	cmd      *exec.Cmd
	in       io.WriteCloser
	lines    chan string // of standard output; closed with it
	progress *text       // standard error
}

// start runs a command that is or becomes a sandbox, and waits until the sandbox is ready.
func start(cmd *exec.Cmd) (*sandbox, error) {
	s, err := begin(cmd)
	if err != nil {
		return nil, err
	}
	select {
	case line, ok := <-s.lines:
		if !ok {
			return nil, fmt.Errorf("the sandbox ended: %v\n%s", s.cmd.Wait(), s.progress)
		}
		return s, json.Unmarshal([]byte(line), s)
	case <-time.After(startWithin):
		_ = s.end()
		return nil, fmt.Errorf("the sandbox is not ready in time\n%s", s.progress)
	}
}

// begin runs a command that is or becomes a sandbox, and does not wait until the sandbox is ready.
func begin(cmd *exec.Cmd) (*sandbox, error) {
	s := &sandbox{cmd: cmd, lines: make(chan string), progress: &text{}}
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = s.progress
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	return s, nil
}

// end closes the sandbox's standard input and waits for its exit.
func (s *sandbox) end() error {
	_ = s.in.Close()
	for range s.lines { // to its end, which Wait must not be called before
	}
	return s.cmd.Wait()
}

// answer is the sandbox's response to a command.
type answer struct {
	OK     bool
	Error  string
	Faults []struct{ Name, Title string }
	// Answers and Hosts are set for scenarios with a machine.
	Answers, Hosts map[string]string
	Here           map[string]bool
}

// ask sends a command and returns the sandbox's response.
func (s *sandbox) ask(t *testing.T, command string) answer {
	t.Helper()
	if _, err := fmt.Fprintln(s.in, command); err != nil {
		t.Fatal(err)
	}
	line, open := <-s.lines
	if !open {
		t.Fatalf("the sandbox ended at %q\n%s", command, s.progress)
	}
	var said answer
	if err := json.Unmarshal([]byte(line), &said); err != nil {
		t.Fatalf("%s: %v in %s", command, err, line)
	}
	return said
}

// tell sends a command and reports whether it succeeded. fault is the error message.
func (s *sandbox) tell(t *testing.T, command string) (ok bool, fault string) {
	t.Helper()
	said := s.ask(t, command)
	return said.OK, said.Error
}

// must sends a command and fails the test if the command fails.
func (s *sandbox) must(t *testing.T, command string) {
	t.Helper()
	if ok, fault := s.tell(t, command); !ok {
		t.Fatalf("%s: %s", command, fault)
	}
}

// config returns the client configuration of a side's admin.
func (s *sandbox) config(t *testing.T, side string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfigs[side])
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func (s *sandbox) client(t *testing.T, side string) kubernetes.Interface {
	t.Helper()
	return clientOf(t, s.config(t, side))
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (s *sandbox) dynamic(t *testing.T, side string) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(s.config(t, side))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually calls look until it returns nil. After the timeout within, it fails the test with look's last error.
func eventually(t *testing.T, within time.Duration, look func() error) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		err := look()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("not within %s: %v", within, err)
		case <-tick.C:
		}
	}
}

// noneLeft fails the test unless all processes and files of the sandbox in dir soon disappear.
func noneLeft(t *testing.T, dir string) {
	t.Helper()
	eventually(t, gone, func() error {
		if left := processes(t, dir); len(left) > 0 {
			return fmt.Errorf("still running:\n%s", strings.Join(left, "\n"))
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			return fmt.Errorf("%s is still there (%v)", dir, err)
		}
		return nil
	})
}

// processes returns the PID and the command of every process whose command line contains dir. This applies to all
// processes of a sandbox except the first.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.Command("ps", "-axww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if strings.Contains(line, dir) && len(fields) > 2 && !strings.HasPrefix(fields[1], "Z") {
			found = append(found, fields[0]+" "+fields[2])
		}
	}
	return found
}

// text is a buffer that several goroutines can read and write.
type text struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.String()
}
