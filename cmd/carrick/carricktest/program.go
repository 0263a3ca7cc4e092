// Package carricktest runs carrick in tests of the whole program. It provides terminals, scripts, pairs of admins, demo
// clusters, and guides that exist only in tests.
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

// Main runs the tests of a package. Depending on its name, the test binary also acts as carrick, as carrick with a test
// guide, as the sandbox program in LentDemo, or as one of the programs in more.
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

// RunProgram is the main function of carrick with the guides in p.
func RunProgram(p commands.Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := commands.Run(ctx, p, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// tidy removes the files that all tests of a binary share.
type tidy struct{ *testing.M }

// Run runs the tests and then removes the shared files.
func (t tidy) Run() int {
	defer func() { _ = os.RemoveAll(built.dir) }()
	return t.M.Run()
}

// Command returns a carrick command that runs in a new directory and ignores the user's settings.
func Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Program(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = OwnEnvironment(cmd.Dir)
	return cmd
}

// OwnEnvironment returns the complete environment of carrick in tests. carrick keeps all its state in dir.
func OwnEnvironment(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LANG=en_US.UTF-8",
		"HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
	}
}

var built struct {
	once sync.Once
	dir  string
	err  error
	said []byte
}

// programAt is the environment variable with the path of carrick. The directory must also contain carrick-sandbox.
const programAt = "CARRICK_PROGRAM"

// Program returns the path of carrick. If CARRICK_PROGRAM is not set, the first call builds carrick. If CARRICK_SANDBOX
// is set, carrick-sandbox is next to the built binary.
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

// Finish runs cmd until it exits, and returns its standard output, standard error and exit code.
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

// ReadFile returns the content of the file at path.
func ReadFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	return string(b), err
}

// OnlyNamed skips the test if CARRICK_GUIDES is set and does not contain guide.
func OnlyNamed(t *testing.T, guide string) {
	t.Helper()
	if only := strings.Fields(os.Getenv("CARRICK_GUIDES")); len(only) > 0 && !slices.Contains(only, guide) {
		t.Skip("CARRICK_GUIDES does not name it")
	}
}

// Copy copies a program to another directory. The copy looks for related programs in that directory.
func Copy(t *testing.T, from, to string) {
	t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	text, err := os.ReadFile(from) // to is on another file system
	if err == nil {
		err = os.WriteFile(to, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
