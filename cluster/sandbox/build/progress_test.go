package build

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// build runs progress.sh around a shell script, with a progress line every so many seconds. It returns the output on
// standard error and the exit code.
func build(t *testing.T, every, script string) (said string, code int) {
	t.Helper()
	cmd := exec.Command("./progress.sh", "the planes", "2900", "480", "/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "PROGRESS_EVERY="+every)
	var out, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &progress
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("standard output: %s", &out)
	}
	return progress.String(), code
}

func TestBuildWithNothingToCompileSaysNothing(t *testing.T) {
	began := time.Now()
	if said, code := build(t, "60", "exit 0"); said != "" || code != 0 {
		t.Errorf("exit %d\n%s", code, said)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it outlives the build by %v", took)
	}
}

func TestBuildOfAFewPackagesSaysNothing(t *testing.T) {
	if said, code := build(t, "60", "echo carrick/cluster >&2; echo carrick/cmd/carrick >&2"); said != "" || code != 0 {
		t.Errorf("exit %d\n%s", code, said)
	}
}

func TestBuildSaysHowLongItTakesAndHowFarItIs(t *testing.T) {
	said, code := build(t, "1", `echo "go: downloading k8s.io/api v0.37.2" >&2
		i=0; while [ $i -lt 12 ]; do echo gopkg.in/yaml.v3/a_b-c~$i >&2; i=$((i+1)); done; sleep 1.5`)
	lines := regexp.MustCompile(`^building the planes: up to 2900 packages, about \d+ min on \d+ cores? ` +
		`where nothing is cached
(building the planes: 1 module downloaded, 12 packages, \d s
){2,}$`)
	if code != 0 || !lines.MatchString(said) {
		t.Errorf("exit %d\n%s", code, said)
	}
}

func TestBuildThatFailsKeepsErrorsAndExitCode(t *testing.T) {
	const errors = "# carrick/cluster\n./a.go:3:4: undefined: b\n\t\"%s\" \\n\n"
	said, code := build(t, "60", "cat >&2 <<'END'\n"+errors+"END\nexit 7")
	if code != 7 || said != errors {
		t.Errorf("exit %d\n%s", code, said)
	}
	if said, code := build(t, "60", "kill -KILL $$"); code != 137 {
		t.Errorf("exit %d\n%s", code, said)
	}
}

func TestErrorsAreKeptAmongTheLinesOfProgress(t *testing.T) {
	said, code := build(t, "1", "echo a/b >&2; sleep 1.5; echo './a.go:3:4: undefined: b' >&2; exit 1")
	if code != 1 || !strings.Contains(said, " s\n./a.go:3:4: undefined: b\nbuilding the planes: 1 package, ") {
		t.Errorf("exit %d\n%s", code, said)
	}
}
