package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// ErrNotRoot means that a file would have to be written by root.
var ErrNotRoot = errors.New("only root may write there, and carrick does not run as root")

// ByRoot tells whether what carrick writes on the host belongs to root there: it runs as root, or writes into a folder
// whose files get their owners when they are copied.
func (h *Host) ByRoot() bool {
	switch {
	case h.options.ByRoot != nil:
		return h.options.ByRoot()
	case h.isThisMachine():
		return os.Geteuid() == 0
	}
	return true
}

// MayWrite says why Write would refuse a file, as far as that can be told without writing: ErrNotRoot, ErrSymlink, or
// that the folder may not be written; nil: it would not.
func (h *Host) MayWrite(name string) error {
	target, _, err := h.target(name)
	if err == nil && !h.ByRoot() {
		err = ErrNotRoot
	}
	if err == nil {
		err = h.mayFill(path.Dir(target))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", Clean(name), err)
	}
	return nil
}

// mayFill says why nothing may be written into a folder, or into the first one above it that is there.
func (h *Host) mayFill(folder string) error {
	for {
		info, err := h.files.Stat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist) && folder != ".":
			folder = path.Dir(folder)
			continue
		case err != nil:
			return bare(err)
		case !info.IsDir():
			return fmt.Errorf("/%s is not a folder", Clean(folder))
		}
		return fillable(filepath.Join(h.Root, folder))
	}
}

// around makes a change as the options want it made.
func (h *Host) around(name string, change func() error) error {
	if h.options.Around == nil {
		return change()
	}
	return h.options.Around(name, change)
}

// ownerOf is whom a file belongs to on the host.
func (h *Host) ownerOf(name string, info fs.FileInfo) (uid, gid int) {
	if h.options.Owner != nil {
		if uid, gid, ok := h.options.Owner(name); ok {
			return uid, gid
		}
	}
	return ownerOf(info)
}
