package roles

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// AssetsVariable is the environment variable with the folder of existing control plane binaries, by the convention of
// controller-runtime's envtest.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// builtFor is a folder of control plane binaries. A build with the tag assets uses them instead of including its own.
// The Makefile sets builtFor with -ldflags.
var builtFor string

// Check returns an error if this build omits a role and the user's machine has no program for it.
func Check() error {
	for _, name := range leftOut {
		if _, ok := Asset(name); !ok {
			return fmt.Errorf("find %s: it is not in %s, and this carrick-sandbox was built without it; run make sandbox",
				name, strings.Join(assetFolders(), " nor in "))
		}
	}
	return nil
}

func assetFolders() []string {
	return slices.DeleteFunc([]string{os.Getenv(AssetsVariable), builtFor}, func(s string) bool { return s == "" })
}

// Link creates folder with a symlink for each role. All of them point to this program, except that kubectl points to
// the user's own if Asset returns one. The servers always run through this program, which ends them with the sandbox.
func Link(folder string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	for _, r := range All() {
		target := self
		if path, ok := Asset(r.Name); ok && !r.Leashed {
			target = path
		}
		if err := os.Symlink(target, filepath.Join(folder, r.Name)); err != nil {
			return err
		}
	}
	return nil
}

// Asset returns the path of the program name, and whether it exists and is not this program. It looks in
// KUBEBUILDER_ASSETS, or else in the folder that was set at build time.
func Asset(name string) (string, bool) {
	executable, err := os.Executable()
	if err != nil {
		return "", false
	}
	self, err := os.Stat(executable)
	if err != nil {
		return "", false
	}
	for _, folder := range assetFolders() {
		path := filepath.Join(folder, name)
		if theirs, err := os.Stat(path); err == nil && !theirs.IsDir() && !os.SameFile(theirs, self) {
			return path, true
		}
	}
	return "", false
}

// Wrap runs the program at path with this program's arguments and standard streams, and forwards termination signals.
// It returns the exit code, or 128 plus the signal number if a signal ended the program. The child stays in this
// process group, so killing the group ends both.
func Wrap(path string) int {
	cmd := exec.Command(path, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "start %s: %v\n", path, err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()) // as shells do
		}
		return max(exit.ExitCode(), 1)
	} else if err != nil {
		return 1
	}
	return 0
}
