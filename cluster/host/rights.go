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

// ErrNotRoot means that only root can write a file.
var ErrNotRoot = errors.New("only root can write there, and carrick does not run as root")

// ByRoot reports whether files that carrick writes belong to root on the host: carrick runs as root, or it writes into
// a folder whose files get their owners when they are copied.
func (h *Host) ByRoot() bool {
	switch {
	case h.options.ByRoot != nil:
		return h.options.ByRoot()
	case h.isThisMachine():
		return os.Geteuid() == 0
	}
	return true
}

// MayWrite returns the error with which Write would refuse a file, as far as that can be determined without writing:
// ErrNotRoot, a FolderError, or an error for a symlink or a folder that is not writable. It returns nil if Write would
// not refuse.
func (h *Host) MayWrite(name string) error {
	if err := h.mayWrite(name); err != nil {
		return fmt.Errorf("write %s: %w", clean.Text(name), err)
	}
	return nil
}

func (h *Host) mayWrite(name string) error {
	dir, base, err := h.openParent(name, false)
	missing := errors.Is(err, fs.ErrNotExist)
	// Write would create it in the closest existing folder above.
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
		err = fillable(filepath.Join(h.Root, dir.path))
	}
	return err
}

// around runs a change through Options.Around.
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
