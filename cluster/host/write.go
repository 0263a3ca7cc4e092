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

// errSymlink means that a symlink exists at the path of the file to write.
var errSymlink = errors.New("it is a symlink, and carrick does not follow symlinks")

// errChanged means that a file has changed since it was last read.
var errChanged = errors.New("its content changed since it was read")

// Write writes a file atomically: a reader gets either the old content or the new. Mode 0 means 0600. The mode is set
// before the content is written. Write creates missing parent directories with mode 0755. A replaced file keeps its
// owner. If that is not possible, Write returns an error and keeps the old file. If the file already has the content
// and the mode, Write does nothing. If the file is a symlink, Write returns an error.
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
	defer file.Close() // the lock keeps other processes from removing the file until it is closed
	if err := dir.Rename(part, base); err != nil {
		_ = dir.Remove(part)
		return bare(err)
	}
	dir.sync()
	return nil
}

// openParent opens the parent directory of a path. It also returns the last component of the path.
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

// fill creates a file with the given mode and the owner of old, and then writes its content. The returned file is open
// and locked (see hold).
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
	if !hold(file) { // another process removed the file before it was locked
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

// keepOwner sets the owner of file to the owner of old, if they differ. old can be nil.
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

// sync writes the directory to disk, so that a rename survives a power failure. Some file systems do not support this.
func (f *folder) sync() {
	if dir, err := f.Open("."); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// Remove removes a file if the hash of its content is wantHash (see FileInfo). If the content has another hash, it
// returns an error. If the file does not exist, it returns nil. If the file is a symlink, it returns an error.
func (h *Host) Remove(ctx context.Context, name, wantHash string) error {
	if err := h.around(name, func() error { return h.remove(ctx, name, wantHash) }); err != nil {
		return fmt.Errorf("remove %s: %w", clean.Text(name), err)
	}
	return nil
}

// RemoveFolder removes an empty directory. If the directory is not empty or does not exist, it returns nil.
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
	// If a file was created in the directory in the meantime, the system keeps the directory.
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
