package roles

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// FindNginx returns this machine's own nginx, which stands where administrators'
// programs do, and whether there is one.
func FindNginx() (string, bool) {
	self, err := os.Executable()
	if err != nil {
		return "", false
	}
	ours, err := os.Stat(self)
	if err != nil {
		return "", false
	}
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin") {
		path, err := exec.LookPath(filepath.Join(folder, Nginx))
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		if theirs, err := os.Stat(path); err == nil && !os.SameFile(theirs, ours) {
			return path, true
		}
	}
	return "", false
}

// runNginx runs it as a part of the sandbox, which ends it.
func runNginx() int {
	path, ok := FindNginx()
	if !ok {
		fmt.Fprintln(os.Stderr, "there is no nginx on this machine")
		return 1
	}
	return Wrap(path)
}
