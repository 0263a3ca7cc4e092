package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"carrick/cluster/clean"
)

// errOtherFolder means that a folder was replaced by another one.
var errOtherFolder = errors.New("the folder was replaced since it was read")

// FolderInfo describes a folder whose mode may be changed.
type FolderInfo struct {
	ID   string // inode number and owner, to notice when another folder replaces it
	Mode fs.FileMode
}

// Folder describes a folder that Chmod can change. Its path must not contain symlinks that other users can create. If
// other users can replace the folder, Folder returns a FolderError.
func (h *Host) Folder(name string) (FolderInfo, error) {
	f, info, err := h.holdFolder(name)
	if err != nil {
		return info, fmt.Errorf("read %s: %w", clean.Text(name), err)
	}
	return info, f.Close()
}

// Chmod removes the permission bits take from a folder and adds the bits give, if the folder still has that ID (see
// FolderInfo); "" accepts any folder.
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

// holdFolder opens a folder. Like entry, it accepts that another user can replace the folder only if that user owns it.
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
