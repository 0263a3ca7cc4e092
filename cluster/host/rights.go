package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"carrick/cluster/clean"
)

// ErrNotRoot means that only root can write a file, and carrick is not root.
var ErrNotRoot = errors.New("only root can write there, and carrick does not run as root")

// ByRoot reports whether files that carrick writes belong to root on the host. This is the case if carrick runs as
// root, or if the host is a directory whose files get their owners when they are copied to the machine.
func (h *Host) ByRoot() bool {
	switch {
	case h.options.ByRoot != nil:
		return h.options.ByRoot()
	case h.isThisMachine():
		return os.Geteuid() == 0
	}
	return true
}

// MayWrite returns the error that Write would return for a file, as far as carrick can determine this without writing.
// The error is ErrNotRoot, a FolderError, or an error for a symlink or for a directory that is not writable. MayWrite
// returns nil if it finds no such error.
func (h *Host) MayWrite(name string) error {
	if err := h.mayWrite(name); err != nil {
		return fmt.Errorf("write %s: %w", clean.Text(name), err)
	}
	return nil
}

func (h *Host) mayWrite(name string) error {
	dir, base, err := h.openParent(name, false)
	missing := errors.Is(err, fs.ErrNotExist)
	// Write would create the missing directories in the closest existing parent directory.
	for above := path.Dir(path.Clean(name)); errors.Is(err, fs.ErrNotExist); {
		above = path.Dir(above)
		dir, err = h.openFolder(above, false)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	if missing {
		err = dir.foreign.refusal()
	} else {
		_, err = h.entry(dir, base)
	}
	if err == nil && !h.ByRoot() {
		err = ErrNotRoot
	}
	if err == nil {
		err = mayCreateIn(filepath.Join(h.Root, dir.path))
	}
	return err
}

// around calls change, through Options.Around if that is set.
func (h *Host) around(name string, change func() error) error {
	if h.options.Around == nil {
		return change()
	}
	return h.options.Around(name, change)
}

// ownerOf returns the owner of a file on the host.
func (h *Host) ownerOf(name string, info fs.FileInfo) (uid, gid int) {
	if h.options.Owner != nil {
		if uid, gid, ok := h.options.Owner(name); ok {
			return uid, gid
		}
	}
	return ownerOf(info)
}
