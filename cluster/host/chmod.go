package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"carrick/cluster/clean"
)

// errOtherFolder means that the directory at a path was replaced since it was read.
var errOtherFolder = errors.New("the directory was replaced since it was read")

// FolderInfo describes a directory whose mode Chmod can change.
type FolderInfo struct {
	ID   string // inode number and owner, to detect that the directory was replaced
	Mode fs.FileMode
}

// Folder returns the ID and the mode of a directory that Chmod can change. Its path must not contain symlinks that
// other users can create. If other users can replace the directory, Folder returns a FolderError.
func (h *Host) Folder(name string) (FolderInfo, error) {
	f, info, err := h.holdFolder(name)
	if err != nil {
		return info, fmt.Errorf("read %s: %w", clean.Text(name), err)
	}
	return info, f.Close()
}

// Chmod changes the mode of a directory. It removes the permission bits in take and adds the bits in give. It returns
// an error if the directory's ID (see FolderInfo) differs from id. An empty id matches any directory.
func (h *Host) Chmod(ctx context.Context, name, id string, take, give fs.FileMode) error {
	err := h.around(name, func() error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		f, info, err := h.holdFolder(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if id != "" && id != info.ID {
			return errOtherFolder
		}
		return bare(f.Chmod(".", info.Mode&^take|give))
	})
	if err != nil {
		return fmt.Errorf("change the mode of %s: %w", clean.Text(name), err)
	}
	return nil
}

// holdFolder opens a directory. If another user can replace the directory, it returns a FolderError, unless that user
// owns the directory (as in entry).
func (h *Host) holdFolder(name string) (*folder, FolderInfo, error) {
	f, err := h.openFolder(name, false)
	if err != nil {
		return nil, FolderInfo{}, err
	}
	info, err := f.Stat(".")
	if err != nil {
		_ = f.Close()
		return nil, FolderInfo{}, bare(err)
	}
	uid, _ := h.ownerOf(f.path, info)
	if by := f.foreign; by != nil && by.path != f.path && (uid != by.uid || !by.alone) {
		_ = f.Close()
		return nil, FolderInfo{}, by.refusal()
	}
	return f, FolderInfo{ID: numberOf(info) + "/" + strconv.Itoa(uid), Mode: info.Mode()}, nil
}
