package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
)

// errSymlink means that the file to write is a symlink.
var errSymlink = errors.New("it is a symlink, and is not followed")

// errChanged means that a file has changed since it was last read.
var errChanged = errors.New("its content changed since it was read")

// Write writes a file atomically: readers see either the old content or the new. Mode 0 means 0600; the mode is set
// before the content is written. Missing parent folders are created with mode 0755. A replaced file keeps its owner; if
// that is not possible, it is not replaced. A file that already has the content and mode is not touched. Write does not
// follow a symlink but returns an error.
func (h *Host) Write(ctx context.Context, name string, data masked.Value, mode fs.FileMode) error {
	if err := h.around(name, func() error { return h.write(ctx, name, data, mode) }); err != nil {
		return fmt.Errorf("write %s: %w", clean.Text(name), err)
	}
	return nil
}

func (h *Host) write(ctx context.Context, name string, data masked.Value, mode fs.FileMode) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if mode == 0 {
		mode = 0o600
	}
	dir, base, err := h.openParent(name, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	old, err := h.entry(dir, base)
	if err != nil {
		return err
	}
	if old != nil && old.Mode().Perm() == mode.Perm() {
		if now, err := dir.contentOf(base, old); err == nil && string(now) == data.Reveal() {
			return nil
		}
	}
	dir.tidy()
	part := partPrefix + rand.Text()
	file, err := dir.fill(part, data, mode, old)
	if err != nil {
		_ = dir.Remove(part)
		return err
	}
	defer file.Close() // until then its lock keeps other processes from removing it
	if err := dir.Rename(part, base); err != nil {
		_ = dir.Remove(part)
		return bare(err)
	}
	dir.sync()
	return nil
}

// openParent opens the parent folder of a path, and returns the path's last component.
func (h *Host) openParent(name string, create bool) (*folder, string, error) {
	if !path.IsAbs(name) {
		return nil, "", errNotAbsolute
	}
	clean := path.Clean(name)
	if clean == "/" {
		return nil, "", errNotRegular
	}
	dir, err := h.openFolder(path.Dir(clean), create)
	return dir, path.Base(clean), err
}

// fill creates a new file with its mode and the owner of old, and then writes its content. It returns the file open and
// locked (see hold).
func (f *folder) fill(name string, data masked.Value, mode fs.FileMode, old fs.FileInfo) (_ *os.File, err error) {
	file, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, bare(err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	if !hold(file) { // another process removed it before it was locked
		return nil, errTidied
	}
	if err := keepOwner(file, old); err != nil {
		return nil, fmt.Errorf("keep its owner: %w", bare(err))
	}
	if err := file.Chmod(mode); err != nil {
		return nil, bare(err)
	}
	if _, err := file.WriteString(data.Reveal()); err != nil {
		return nil, bare(err)
	}
	if err := file.Sync(); err != nil {
		return nil, bare(err)
	}
	return file, nil
}

// keepOwner sets the owner of file to that of old, if they differ.
func keepOwner(file *os.File, old fs.FileInfo) error {
	if old == nil {
		return nil
	}
	now, err := file.Stat()
	if err != nil {
		return err
	}
	uid, gid := ownerOf(old)
	if nowUID, nowGID := ownerOf(now); nowUID == uid && nowGID == gid {
		return nil
	}
	return file.Chown(uid, gid)
}

// sync makes a rename survive a power failure, if the file system supports it.
func (f *folder) sync() {
	if dir, err := f.Open("."); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// Remove removes a file if its content still has wantHash (see FileInfo). Otherwise it returns an error. A missing file
// returns nil. Remove does not follow a symlink but returns an error.
func (h *Host) Remove(ctx context.Context, name, wantHash string) error {
	if err := h.around(name, func() error { return h.remove(ctx, name, wantHash) }); err != nil {
		return fmt.Errorf("remove %s: %w", clean.Text(name), err)
	}
	return nil
}

// RemoveFolder removes an empty folder. It returns nil if the folder is not empty or does not exist.
func (h *Host) RemoveFolder(ctx context.Context, name string) error {
	if err := h.around(name, func() error { return h.removeFolder(ctx, name) }); err != nil {
		return fmt.Errorf("remove %s: %w", clean.Text(name), err)
	}
	return nil
}

func (h *Host) removeFolder(ctx context.Context, name string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	dir, err := h.openFolder(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	dir.tidy()
	if empty, err := dir.empty(); err != nil || !empty {
		return err
	}
	parent, err := h.openFolder(path.Dir(dir.path), false)
	if err != nil {
		return err
	}
	defer parent.Close()
	is, err := dir.Stat(".")
	if err != nil {
		return bare(err)
	}
	if now, err := parent.Lstat(path.Base(dir.path)); err != nil || !os.SameFile(is, now) {
		return errSwapped
	}
	// A file may have been created in it since: the system refuses to remove the folder then.
	err = parent.Remove(path.Base(dir.path))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) {
		return nil
	}
	return bare(err)
}

func (f *folder) empty() (bool, error) {
	dir, err := f.Open(".")
	if err != nil {
		return false, bare(err)
	}
	defer dir.Close()
	_, err = dir.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, bare(err)
}

func (h *Host) remove(ctx context.Context, name, wantHash string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	dir, base, err := h.openParent(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := h.entry(dir, base)
	if err != nil || info == nil {
		return err
	}
	data, err := dir.contentOf(base, info)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if masked.Hash(string(data)) != wantHash {
		return errChanged
	}
	if err := dir.Remove(base); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return bare(err)
	}
	return nil
}
