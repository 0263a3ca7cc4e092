package host

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"syscall"
)

// partPrefix begins the name of a file that is being written, beside the one that it takes the place of.
const partPrefix = ".carrick-"

// errTidied means that two wrote into one folder at the same moment.
var errTidied = errors.New("another carrick writes there at the same time: try again")

// Tidy removes what writing a file has left half-written beside it, where carrick was killed meanwhile. What another
// carrick is writing stays.
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

// drop removes a file that nobody holds.
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
