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

// errSwapped means that a component of a path was replaced while it was being opened.
var errSwapped = errors.New("it was replaced while it was opened")

// FolderError means that carrick must not write a file, because a user other than root can replace a component of its
// path and so redirect the write.
type FolderError struct {
	Path string // of the component, on the host
	Why  string
}

func (e *FolderError) Error() string {
	return clean.Text(e.Path) + " " + e.Why
}

// folder is an open directory of the host. Operations act on that directory, even if its path is replaced meanwhile.
type folder struct {
	*os.Root
	path    string // on the host, without symlinks
	foreign *foreign
}

// foreign is the first component of a path that a user other than root and the user who runs carrick can write to.
type foreign struct {
	path  string
	uid   int
	alone bool // only its owner can write to it
}

// openFolder opens a directory component by component, each relative to the previous one, so that no component can be
// replaced by a link in between. It follows symlinks as the host would, but only where root alone can create them. With
// create, it creates missing directories with mode 0755. Otherwise a missing directory returns fs.ErrNotExist.
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
// another file there, because they can write to a folder on the path or replace a symlink. The file itself may be
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

// Readlink returns the target of a symlink, or "" for any other file and for a missing one. The trace of ctx wakes when
// that changes.
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

// linkAt returns the target of a symlink as an absolute path. For any other file linked is false, and leads is the
// file's own path without symlinks.
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

// walk enters one directory after the other. When it reaches a symlink, led is true, and rest is the remaining path
// from the root.
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
					"is a symlink in a folder that uid %d can write to: remove the link, or choose another path", f.foreign.uid,
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

// top returns the root folder of the host. It is trusted, because everything depends on it.
func (h *Host) top() (*folder, error) {
	root, err := h.files.OpenRoot(".")
	if err != nil {
		return nil, bare(err)
	}
	return &folder{Root: root, path: "/"}, nil
}

// enter opens the directory in f that info describes, and replaces f with it.
func (f *folder) enter(h *Host, step string, info fs.FileInfo) error {
	at := path.Join(f.path, step)
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", clean.Text(at))
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

// foreign describes who else can change the entries of a directory. It returns nil if owner and mode allow only root
// and the owner of the host's root folder to do so. In a folder that represents a machine, the user who runs carrick
// counts as root.
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

// refusal returns the error that says why carrick creates no new files in a directory, or nil if it does.
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

// entry describes the file of a name in a folder, or returns nil if it does not exist. A symlink returns errSymlink.
// entry returns a FolderError if another user can replace the file, unless that user owns it: a user who owns both the
// folder and the file gains nothing by redirecting the write.
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

// contentOf reads the regular file in a folder that info describes.
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
