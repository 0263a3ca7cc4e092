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

// AssetsVariable is the environment variable with the directory of the user's own control plane binaries. envtest in
// controller-runtime uses the same name.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// builtFor is a directory with control plane binaries. The Makefile sets it with -ldflags. A build with the tag assets
// runs these binaries, because it embeds none.
var builtFor string

// Check returns an error if this build lacks a program and the user does not have it either.
func Check() error {
	for _, name := range leftOut {
		if _, ok := Asset(name); !ok {
			return fmt.Errorf("find %s: the binary is not in %s, and this carrick-sandbox does not include it; run make sandbox",
				name, strings.Join(assetFolders(), " nor in "))
		}
	}
	return nil
}

func assetFolders() []string {
	return slices.DeleteFunc([]string{os.Getenv(AssetsVariable), builtFor}, func(s string) bool { return s == "" })
}

// Link creates the directory folder with one symlink per role. kubectl points to the user's own kubectl if Asset finds
// one. All other symlinks point to this program, because it stops the servers when the sandbox exits.
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

// Asset returns the path of the user's own program name. It searches KUBEBUILDER_ASSETS first and then the directory
// from build time. It returns false if neither contains the program, or if the program is this binary.
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

// Wrap runs the program at path with this program's arguments and standard streams. It forwards termination signals to
// the program. It returns the program's exit code, or 128 plus the signal number if a signal ended the program. Both
// processes are in the same process group, so killing the group ends both.
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
			return 128 + int(status.Signal()) // as in shells
		}
		return max(exit.ExitCode(), 1)
	} else if err != nil {
		return 1
	}
	return 0
}
