package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"carrick/cluster/clean"
)

// errSwapped means that a component of a path was replaced while carrick opened the path.
var errSwapped = errors.New("it was replaced while it was opened")

// FolderError means that carrick does not write a file because a user other than root can replace a component of its
// path. That user could redirect the write to another file.
type FolderError struct {
	Path string // path of the component on the host
	Why  string
}

func (e *FolderError) Error() string {
	return clean.Text(e.Path) + " " + e.Why
}

// folder is an open directory of the host. Operations apply to this directory, even if another directory replaces it at
// its path.
type folder struct {
	*os.Root
	path    string // on the host, without symlinks
	foreign *foreign
}

// foreign describes the first directory on a path that other users can change. Host.foreign defines which users count
// as other users.
type foreign struct {
	path  string
	uid   int
	alone bool // only the owner can write to the directory
}

// openFolder opens a directory. It opens each component of the path relative to the previous one, so that no component
// can be replaced by a symlink in between. It follows symlinks as the host would, but only in directories where only
// root can create them. If create is true, it creates missing directories with mode 0755. Otherwise it returns
// fs.ErrNotExist for a missing directory.
func (h *Host) openFolder(name string, create bool) (*folder, error) {
	if !path.IsAbs(name) {
		return nil, errNotAbsolute
	}
	todo := parts(name)
	for range mostLinks + 1 {
		f, err := h.top()
		if err != nil {
			return nil, err
		}
		rest, led, err := f.walk(h, todo, create)
		if err == nil && !led {
			return f, nil
		}
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		todo = rest
	}
	return nil, fmt.Errorf("it contains more than %d symlinks", mostLinks)
}

// RootsAlone returns the target of a path, without symlinks. It returns a FolderError if a user other than root can put
// another file at the path, by writing to a directory on the path or by replacing a symlink. The file itself can be
// missing or belong to another user.
func (h *Host) RootsAlone(name string) (string, error) {
	at := name
	for range mostLinks + 1 {
		leads, linked, err := h.linkAt(at)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", clean.Text(name), err)
		}
		if !linked {
			return leads, nil
		}
		at = leads
	}
	return "", fmt.Errorf("read %s: it contains more than %d symlinks", clean.Text(name), mostLinks)
}

// Readlink returns the target of a symlink. It returns "" if the path is another kind of file or does not exist. The
// trace of ctx records the read, so that Trace.Wait returns when the result changes.
func (h *Host) Readlink(ctx context.Context, name string) (string, error) {
	h.track(ctx, name)
	leads, linked, err := h.linkAt(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read %s: %w", clean.Text(name), err)
	case !linked:
		return "", nil
	}
	return leads, nil
}

// linkAt returns the target of a symlink as an absolute path. If the file is not a symlink, linked is false, and leads
// is the file's own path without symlinks.
func (h *Host) linkAt(name string) (leads string, linked bool, err error) {
	dir, base, err := h.openParent(name, false)
	if err != nil {
		return "", false, err
	}
	defer dir.Close()
	if err := dir.foreign.refusal(); err != nil {
		return "", false, err
	}
	target, err := dir.Readlink(base)
	switch {
	case err != nil: // not a symlink
		return path.Join(dir.path, base), false, nil
	case path.IsAbs(target):
		return path.Clean(target), true, nil
	}
	return path.Join(dir.path, target), true, nil
}

// walk opens the directories in todo one after the other. If it reaches a symlink, led is true, and rest is the
// remaining path from the root with the symlink replaced by its target.
func (f *folder) walk(h *Host, todo []string, create bool) (rest []string, led bool, err error) {
	for i, step := range todo {
		info, err := f.Lstat(step)
		if create && errors.Is(err, fs.ErrNotExist) {
			if err := f.foreign.refusal(); err != nil {
				return nil, false, err
			}
			if err := f.Mkdir(step, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, false, bare(err)
			}
			info, err = f.Lstat(step)
		}
		switch {
		case err != nil:
			return nil, false, bare(err)
		case info.Mode()&fs.ModeSymlink == 0:
			if err := f.enter(h, step, info); err != nil {
				return nil, false, err
			}
			continue
		case f.foreign != nil:
			at := path.Join(f.path, step)
			return nil, false, &FolderError{
				at,
				fmt.Sprintf(
					"is a symlink in a directory that uid %d can write to: remove the symlink, or choose another path", f.foreign.uid,
				),
			}
		}
		target, err := f.Readlink(step)
		if err != nil {
			return nil, false, bare(err)
		}
		if !path.IsAbs(target) {
			target = path.Join(f.path, target)
		}
		return slices.Concat(parts(target), todo[i+1:]), true, nil
	}
	return nil, false, nil
}

// top opens the root directory of the host. carrick trusts the root directory, even if other users can write to it.
func (h *Host) top() (*folder, error) {
	root, err := h.files.OpenRoot(".")
	if err != nil {
		return nil, bare(err)
	}
	return &folder{Root: root, path: "/"}, nil
}

// enter replaces f with its subdirectory step. info is the expected file information of the subdirectory.
func (f *folder) enter(h *Host, step string, info fs.FileInfo) error {
	at := path.Join(f.path, step)
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", clean.Text(at))
	}
	next, err := f.OpenRoot(step)
	if err != nil {
		return bare(err)
	}
	now, err := next.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = errSwapped
	}
	if err != nil {
		_ = next.Close()
		return bare(err)
	}
	_ = f.Close()
	f.Root, f.path = next, at
	if f.foreign == nil {
		f.foreign = h.foreign(at, now)
	}
	return nil
}

// foreign describes which other users can change the entries of the directory at the path at. If there are none, it
// returns nil. Other users are all users except root and the owner of the host's root directory. If the host is a
// directory that represents a machine, the user who runs carrick counts as root.
func (h *Host) foreign(at string, info fs.FileInfo) *foreign {
	const groupWrites, othersWrite = 0o020, 0o002
	uid, gid := h.ownerOf(at, info)
	if uid < 0 { // the system has no file owners
		return nil
	}
	uids, gids := []int{0}, []int{0}
	if !h.isThisMachine() {
		uids = append(uids, os.Geteuid())
	}
	if top, err := h.files.Stat("."); err == nil {
		uid, gid := ownerOf(top)
		uids, gids = append(uids, uid), append(gids, gid)
	}
	mode := info.Mode().Perm()
	alone := mode&othersWrite == 0 && (mode&groupWrites == 0 || slices.Contains(gids, gid))
	if slices.Contains(uids, uid) && alone {
		return nil
	}
	return &foreign{at, uid, alone}
}

// refusal returns why carrick does not create new files in a directory, or nil if it does.
func (f *foreign) refusal() error {
	switch {
	case f == nil:
		return nil
	case f.alone:
		return &FolderError{
			f.path,
			fmt.Sprintf(
				"is owned by uid %d, who can replace its content: chown root %s, or choose another path", f.uid,
				clean.Text(f.path),
			),
		}
	}
	return &FolderError{
		f.path,
		fmt.Sprintf(
			"is writable by users other than root: chown root:root %[1]s && chmod go-w %[1]s, or choose another path",
			clean.Text(f.path),
		),
	}
}

// entry returns information on a file in a directory, or nil if the file does not exist. For a symlink, it returns
// errSymlink. If another user can replace the file, it returns a FolderError, unless that user owns the file. A user
// who owns both the directory and the file gains nothing by redirecting the write.
func (h *Host) entry(f *folder, name string) (fs.FileInfo, error) {
	info, err := f.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, f.foreign.refusal()
	case err != nil:
		return nil, bare(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errSymlink
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	}
	if f.foreign != nil {
		if uid, _ := h.ownerOf(path.Join(f.path, name), info); uid != f.foreign.uid || !f.foreign.alone {
			return nil, f.foreign.refusal()
		}
	}
	return info, nil
}

// contentOf reads a regular file in a directory. info is the expected file information.
func (f *folder) contentOf(name string, info fs.FileInfo) ([]byte, error) {
	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, bare(err)
	}
	defer file.Close()
	now, err := file.Stat()
	switch {
	case err != nil:
		return nil, bare(err)
	case !os.SameFile(info, now):
		return nil, errSwapped
	}
	return whole(file, now)
}
