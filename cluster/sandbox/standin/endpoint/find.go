package endpoint

import (
	"os"
	"os/exec"
	"path/filepath"
)

// FindNginx returns the path of this machine's nginx. It also searches directories like /usr/sbin that are not in every
// user's PATH.
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
		path, err := exec.LookPath(filepath.Join(folder, "nginx"))
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		if theirs, err := os.Stat(path); err == nil && !os.SameFile(theirs, ours) {
			return path, true
		}
	}
	return "", false
}
