package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// ErrSymlink means that a file that was to be written is a symlink.
var ErrSymlink = errors.New("it is a symlink, and is not followed")

// ErrChanged means that a file is not what it was when it was last looked at.
var ErrChanged = errors.New("its content has changed since it was looked at")

// Write puts a file in place, all at once: whoever reads it sees the old content or the new. Mode 0 is 0600; the mode is
// set before there is content. The folders above are made with 0755 where they are missing. A file that is replaced
// keeps its owner, and where that can't be, it is not replaced; one that is as it should be is not touched. A symlink is not followed but refused: ErrSymlink.
func (h *Host) Write(ctx context.Context, name string, data Masked, mode fs.FileMode) error {
	if err := h.around(name, func() error { return h.write(ctx, name, data, mode) }); err != nil {
		return fmt.Errorf("write %s: %w", Clean(name), err)
	}
	return nil
}

func (h *Host) write(ctx context.Context, name string, data Masked, mode fs.FileMode) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if mode == 0 {
		mode = 0o600
	}
	target, old, err := h.target(name)
	if err != nil {
		return err
	}
	if old != nil && old.Mode().Perm() == mode.Perm() {
		if now, err := h.content(ctx, "/"+target); err == nil && string(now) == data.Reveal() {
			return nil
		}
	}
	if err := h.files.MkdirAll(path.Dir(target), 0o755); err != nil {
		return bare(err)
	}
	h.tidy(path.Dir(target))
	part := path.Join(path.Dir(target), partPrefix+rand.Text())
	file, err := h.fill(part, data, mode, old)
	if err != nil {
		_ = h.files.Remove(part)
		return err
	}
	defer file.Close() // until then it is nobody's to tidy away
	if err := h.files.Rename(part, target); err != nil {
		_ = h.files.Remove(part)
		return bare(err)
	}
	h.syncFolder(path.Dir(target))
	return nil
}

// target resolves the folder of a path but not its last step, and describes what stands there: nil for nothing.
func (h *Host) target(name string) (string, fs.FileInfo, error) {
	if !path.IsAbs(name) {
		return "", nil, errNotAbsolute
	}
	clean := path.Clean(name)
	if clean == "/" {
		return "", nil, errNotRegular
	}
	folder, err := h.resolve(path.Dir(clean))
	if err != nil {
		return "", nil, err
	}
	target := path.Join(folder, path.Base(clean))
	info, err := h.files.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return target, nil, nil
	case err != nil:
		return "", nil, bare(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return "", nil, ErrSymlink
	case !info.Mode().IsRegular():
		return "", nil, errNotRegular
	}
	return target, info, nil
}

// fill makes a new file with its mode and the owner of old, and then gives it its content. It is held when it is returned.
func (h *Host) fill(name string, data Masked, mode fs.FileMode, old fs.FileInfo) (_ *os.File, err error) {
	file, err := h.files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, bare(err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	if !hold(file) { // somebody has tidied it away before it was held
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

// keepOwner gives file the owner that old has, where they differ.
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

// syncFolder makes a rename last through a power cut, where the file system can.
func (h *Host) syncFolder(name string) {
	if folder, err := h.files.Open(name); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
}

// Remove removes a file if its content still has wantHash (see FileInfo), else it is ErrChanged. A file that is gone
// already is nil. A symlink is not followed: ErrSymlink.
func (h *Host) Remove(ctx context.Context, name, wantHash string) error {
	if err := h.around(name, func() error { return h.remove(ctx, name, wantHash) }); err != nil {
		return fmt.Errorf("remove %s: %w", Clean(name), err)
	}
	return nil
}

// RemoveFolder removes a folder that is empty; one that is not, or is gone already, is nil.
func (h *Host) RemoveFolder(ctx context.Context, name string) error {
	if err := h.around(name, func() error { return h.removeFolder(ctx, name) }); err != nil {
		return fmt.Errorf("remove %s: %w", Clean(name), err)
	}
	return nil
}

func (h *Host) removeFolder(ctx context.Context, name string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	target, err := h.resolve(name)
	if err != nil {
		return err
	}
	h.tidy(target)
	names, err := h.list(ctx, name)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(names) > 0) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := h.files.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return bare(err)
	}
	return nil
}

func (h *Host) remove(ctx context.Context, name, wantHash string) error {
	target, info, err := h.target(name)
	if err != nil || info == nil {
		return err
	}
	data, err := h.content(ctx, "/"+target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if hashOf(string(data)) != wantHash {
		return ErrChanged
	}
	if err := h.files.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return bare(err)
	}
	return nil
}
