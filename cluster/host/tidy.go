package host

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"syscall"
)

// partPrefix is the prefix of the names of temporary files. carrick writes a temporary file next to a file that it then
// replaces.
const partPrefix = ".carrick-"

// errTidied means that two carrick processes wrote to a directory at the same time.
var errTidied = errors.New("another carrick process writes there at the same time: try again")

// Tidy removes temporary files that a killed carrick process left next to a file. It keeps temporary files that another
// carrick process is writing.
func (h *Host) Tidy(name string) {
	if dir, _, err := h.openParent(name, false); err == nil {
		dir.tidy()
		_ = dir.Close()
	}
}

func (f *folder) tidy() {
	dir, err := f.Open(".")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		if tail, ok := strings.CutPrefix(name, partPrefix); ok && len(tail) == len(rand.Text()) &&
			strings.ToUpper(tail) == tail {
			f.drop(name)
		}
	}
}

// drop removes a temporary file that no process has locked.
func (f *folder) drop(part string) {
	if info, err := f.Lstat(part); err != nil || !info.Mode().IsRegular() {
		return
	}
	file, err := f.OpenFile(part, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer file.Close()
	if lockedByOther(file) {
		return
	}
	_ = f.Remove(part)
}
