package plane

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// shell returns a function that starts a shell script, and the path of a file to which each start appends a line.
func shell(t *testing.T, script string) (start func() (*exec.Cmd, error), starts string) {
	t.Helper()
	starts = filepath.Join(t.TempDir(), "starts")
	return func() (*exec.Cmd, error) {
		cmd := exec.Command("/bin/sh", "-c", "echo x >> "+starts+"\n"+script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd, cmd.Start()
	}, starts
}

func lines(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func TestProgramThatEndsIsStartedAgainAndGivenUp(t *testing.T) {
	start, starts := shell(t, "exit 7")
	gaveUp := make(chan error, 1)
	if _, err := keepUp(start, func(err error) { gaveUp <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-gaveUp; !strings.Contains(err.Error(), "exit status 7") {
		t.Error(err)
	}
	if n := lines(t, starts); n != 1+maxRestarts {
		t.Errorf("started %d times", n)
	}
}

func TestKilledProgramIsNotStartedAgain(t *testing.T) {
	start, starts := shell(t, "exec sleep 1000")
	r, err := keepUp(start, func(err error) { t.Errorf("gave up: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	r.kill()
	if _, err := os.Stat(starts); err == nil && lines(t, starts) != 1 {
		t.Errorf("started %d times", lines(t, starts))
	}
}

func TestProgramThatCannotBeStarted(t *testing.T) {
	_, err := keepUp(func() (*exec.Cmd, error) {
		cmd := exec.Command("/nonexistent")
		return cmd, cmd.Start()
	}, func(error) {})
	if err == nil {
		t.Error("no error")
	}
}
