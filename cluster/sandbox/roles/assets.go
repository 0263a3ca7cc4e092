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

// AssetsVariable names the folder of control plane binaries that the user
// already has. It is the convention of controller-runtime's envtest.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// builtFor is the folder for whose programs this build leaves out its own, where it has the tag assets. The Makefile
// sets it with -ldflags.
var builtFor string

// Check returns an error unless each role that this build leaves out is found among the user's own programs.
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

// Link makes folder with a symlink for each role, all of them to this
// program, except that kubectl is the user's own where there is one of
// Asset. The servers go through this program in any case: it is what ends
// them with the sandbox.
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

// Asset returns the path of name in KUBEBUILDER_ASSETS, or else in the folder that this build is for, and whether there
// is such a program that is not this one.
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

// Wrap runs the program at path with this program's arguments and streams,
// hands on the signals that end it, and returns its exit code: 128 and the
// signal's number where one has ended it. The child stays in this process
// group, so that killing the group ends both.
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
			return 128 + int(status.Signal()) // as a shell says it
		}
		return max(exit.ExitCode(), 1)
	} else if err != nil {
		return 1
	}
	return 0
}
