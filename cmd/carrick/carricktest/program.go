// Package carricktest runs carrick for tests of the whole program: on a terminal, by scripts, by two admins, on the
// demo's clusters, and with guides that exist only in tests.
package carricktest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"carrick/assets"
	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/demo"
	"carrick/cmd/carrick/guides"
)

// Main runs the tests of a package. This test binary also acts as carrick (without the topics of its README), as
// carrick with a test guide, as the sandbox program of LentDemo, and as the programs in more.
func Main(m *testing.M, more map[string]func()) {
	if filepath.Base(os.Args[0]) == demo.Program {
		lentMain()
		return
	}
	carrick := func() { RunProgram(commands.Program{Guides: guides.All(), Assets: assets.FS}) }
	programs := map[string]func(){"carrick": carrick, "carrick-trial": trialMain, "carrick-duo": duoMain}
	maps.Copy(programs, more)
	testscript.Main(tidy{m}, programs)
}

// RunProgram is the main function of a carrick with additional guides.
func RunProgram(p commands.Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := commands.Run(ctx, p, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// tidy removes files that the tests of one binary share.
type tidy struct{ *testing.M }

// Run runs the tests.
func (t tidy) Run() int {
	defer func() { _ = os.RemoveAll(built.dir) }()
	return t.M.Run()
}

// Command returns a carrick command, in a folder of its own, without the user's settings.
func Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Program(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = OwnEnvironment(cmd.Dir)
	return cmd
}

// OwnEnvironment returns the complete environment of carrick in tests. All its state goes into dir.
func OwnEnvironment(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LANG=en_US.UTF-8",
		"HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
	}
}

// built is carrick as users run it, with the sandbox program next to it.
var built struct {
	once sync.Once
	dir  string
	err  error
	said []byte
}

// programAt is the environment variable for the path of carrick, which has carrick-sandbox next to it.
const programAt = "CARRICK_PROGRAM"

// Program returns the path of carrick: the one in CARRICK_PROGRAM, or one that the first caller builds. Unlike the
// command of the scripts it is not a test binary, and if CARRICK_SANDBOX is set it finds carrick-sandbox next to
// itself.
func Program(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(programAt); path != "" {
		return path
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "carrick-built-*"); built.err != nil {
			return
		}
		if box := os.Getenv(clustertest.Program); box != "" {
			if built.err = os.Symlink(box, filepath.Join(built.dir, demo.Program)); built.err != nil {
				return
			}
		}
		built.said, built.err = exec.Command(
			"go", "build", "-o", filepath.Join(built.dir, "carrick"), "carrick/cmd/carrick",
		).CombinedOutput()
	})
	if built.err != nil {
		t.Fatalf("build carrick: %v\n%s", built.err, built.said)
	}
	return filepath.Join(built.dir, "carrick")
}

// Finish runs a command until it exits.
func Finish(t testing.TB, cmd *exec.Cmd) (out, said string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ended := (*exec.ExitError)(nil)
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// ReadFile returns the text of a file.
func ReadFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	return string(b), err
}

// OnlyNamed skips the test if CARRICK_GUIDES names guides, but not this one.
func OnlyNamed(t *testing.T, guide string) {
	t.Helper()
	if only := strings.Fields(os.Getenv("CARRICK_GUIDES")); len(only) > 0 && !slices.Contains(only, guide) {
		t.Skip("CARRICK_GUIDES does not name it")
	}
}

// Copy copies a program to another folder, so that it looks for related programs there.
func Copy(t *testing.T, from, to string) {
	t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	text, err := os.ReadFile(from) // the target is on another file system
	if err == nil {
		err = os.WriteFile(to, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
