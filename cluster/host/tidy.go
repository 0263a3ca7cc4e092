package host

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"syscall"
)

// partPrefix is the prefix of a file's temporary name while it is being written next to the file that it will replace.
const partPrefix = ".carrick-"

// errTidied means that two processes wrote into one folder at the same time.
var errTidied = errors.New("another carrick process writes there at the same time: try again")

// Tidy removes the temporary files that a killed carrick process left next to a file. It keeps those that another
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

// drop removes a temporary file unless a process has it locked.
func (f *folder) drop(part string) {
	if info, err := f.Lstat(part); err != nil || !info.Mode().IsRegular() {
		return
	}
	file, err := f.OpenFile(part, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer file.Close()
	if inHand(file) {
		return
	}
	_ = f.Remove(part)
}
