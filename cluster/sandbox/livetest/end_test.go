package livetest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// own starts a sandbox for one test. It kills the sandbox after the test.
func own(t *testing.T, args ...string) *sandbox {
	t.Helper()
	s, err := start(exec.Command(program, args...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	if len(processes(t, s.Dir)) < 11 {
		t.Fatalf("only these run: %v", processes(t, s.Dir))
	}
	return s
}

func TestEndOfInputLeavesNothing(t *testing.T) {
	s := own(t)
	began := time.Now()
	if err := s.end(); err != nil {
		t.Errorf("exit: %v\n%s", err, s.progress)
	}
	t.Logf("ended within %s", time.Since(began))
	if left := processes(t, s.Dir); len(left) > 0 {
		t.Errorf("still running after its exit: %v", left)
	}
	if _, err := os.Lstat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there", s.Dir)
	}
}

func TestSignalLeavesNothing(t *testing.T) {
	s := own(t, "--empty")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range s.lines {
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, s.progress)
	}
	noneLeft(t, s.Dir)
}

func TestKillLeavesNothing(t *testing.T) {
	s := own(t, "--empty")
	began := time.Now()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, s.Dir)
	t.Logf("gone within %s", time.Since(began))
}

func TestKillOfSandboxAndKeeperLeavesNothing(t *testing.T) {
	s := own(t, "--empty")
	if err := syscall.Kill(keeper(t, s.Dir), syscall.SIGSTOP); err != nil { // so that it cannot do its work first
		t.Fatal(err)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(keeper(t, s.Dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, s.Dir)
}

func TestKillOfKeeperEndsTheSandbox(t *testing.T) {
	s := own(t, "--empty")
	if err := syscall.Kill(keeper(t, s.Dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range s.lines {
	}
	if err := s.cmd.Wait(); err == nil {
		t.Error("the sandbox ended as if nothing had happened")
	}
	noneLeft(t, s.Dir)
}

// keeper returns the PID of the sandbox's keeper process.
func keeper(t *testing.T, dir string) int {
	t.Helper()
	for _, line := range processes(t, dir) {
		number, name, _ := strings.Cut(line, " ")
		if name == "carrick-sandbox-keeper" {
			pid, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("no keeper")
	return 0
}

func TestKillWhileStartingLeavesNothing(t *testing.T) {
	for _, wait := range []string{"leash", "bin", "logs", "local.kubeconfig", "logs/remote-kwok.log"} {
		dir := filepath.Join(t.TempDir(), "s")
		s, err := begin(exec.Command(program, "--dir", dir))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, happens, func() error { _, err := os.Lstat(filepath.Join(dir, wait)); return err })
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		noneLeft(t, dir)
		_ = s.end()
	}
}

// holderVariable is the environment variable that makes this test's own program start a sandbox and hold the sandbox's
// standard input open, as carrick does.
const (
	holderVariable = "LIVETEST_HOLDS"
	folderVariable = "LIVETEST_FOLDER"
)

func hold() int {
	s, err := start(exec.Command(os.Getenv(holderVariable), "--dir", os.Getenv(folderVariable)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func TestKillOfTheParentLeavesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), holderVariable+"="+program, folderVariable+"="+filepath.Join(t.TempDir(), "s"))
	holder, err := start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if len(processes(t, holder.Dir)) < 12 { // the sandbox itself is one of them
		t.Fatalf("only these run: %v", processes(t, holder.Dir))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, holder.Dir)
}

func TestFolderInUseIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "--dir", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not empty") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
