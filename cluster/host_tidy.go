package cluster

import (
	"crypto/rand"
	"errors"
	"os"
	"path"
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
	if target, _, err := h.target(name); err == nil {
		h.tidy(path.Dir(target))
	}
}

func (h *Host) tidy(folder string) {
	dir, err := h.files.Open(folder)
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		if tail, ok := strings.CutPrefix(name, partPrefix); ok && len(tail) == len(rand.Text()) && strings.ToUpper(tail) == tail {
			h.drop(path.Join(folder, name))
		}
	}
}

// drop removes a file that nobody holds.
func (h *Host) drop(part string) {
	if info, err := h.files.Lstat(part); err != nil || !info.Mode().IsRegular() {
		return
	}
	file, err := h.files.OpenFile(part, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer file.Close()
	if inHand(file) {
		return
	}
	_ = h.files.Remove(part)
}
