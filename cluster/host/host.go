package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/masked"
)

// Host is a machine with files and commands. Its files are below a root directory. If the root is "/", the host is this
// machine. Any other directory represents a machine and has no commands. Host is safe for concurrent use.
//
// Paths are absolute paths on the host. Symlinks are followed as the host would follow them: a symlink to /etc/x points
// to etc/x below Root. No path can leave Root.
type Host struct {
	Root     string // absolute, without symlinks
	files    *os.Root
	watch    watch
	options  Options
	clusters clusters
}

// Options are the options of a host. The zero value is for a real machine.
type Options struct {
	// Run runs the host's commands. If it is nil, this machine runs them, and a directory that represents a machine has
	// no commands. If Run is set, IsFolder returns false.
	Run func(ctx context.Context, name string, args ...string) (stdout, stderr string, err error)
	// Owner returns the owner of a file. If Owner is nil or ok is false, the file system's owner is used.
	Owner func(path string) (uid, gid int, ok bool)
	// ByRoot reports whether carrick is root on the host. If ByRoot is nil, this machine uses the effective user of the
	// process, and a directory that represents a machine always belongs to root.
	ByRoot func() bool
	// Around wraps each write and removal, so that callers can count or abort them. It calls change to perform the
	// operation.
	Around func(path string, change func() error) error
	// Here means that the directory is the root of the machine whose network this process shares, for example a mount of
	// the machine's root in a container.
	Here bool

	Clusters cluster.Options // options for the clusters from kubeconfigs on the host
	Timeout  time.Duration   // limit for one request to these clusters; 0: 10 s
}

// FileInfo describes a file.
type FileInfo struct {
	Mode     fs.FileMode
	UID, GID int // -1 if the system has no file owners
	Size     int64
	ModTime  time.Time
	Hash     string // masked.Hash of the content of a readable regular file; else ""
}

// fileLimit is the maximum size in bytes of a file that Read reads.
const fileLimit = 16 << 20

// New returns the host whose files are below the directory root. The directory must exist.
func New(root string) (*Host, error) { return NewWith(root, Options{}) }

// NewWith is like New, but with options.
func NewWith(root string, o Options) (*Host, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open host %s: %w", clean.Text(root), err)
	}
	if absolute, err = filepath.EvalSymlinks(absolute); err != nil {
		return nil, fmt.Errorf("open host %s: %w", clean.Text(root), err)
	}
	files, err := os.OpenRoot(absolute)
	if err != nil {
		return nil, fmt.Errorf("open host %s: %w", clean.Text(root), err)
	}
	h := &Host{Root: absolute, files: files, options: o}
	h.watch.folders = map[string][]*trackedFile{}
	h.watch.byPath = map[string]*trackedFile{}
	return h, nil
}

// Close stops watching files, and closes the clusters of the host's kubeconfigs. Reading files afterwards returns an
// error.
func (h *Host) Close() {
	h.watch.close()
	h.clusters.close()
	_ = h.files.Close()
}

// IsFolder reports whether the host is only a directory that represents a machine.
func (h *Host) IsFolder() bool { return !h.isThisMachine() && h.options.Run == nil }

// Here reports whether this process shares the host's network, so that its connections come from the host. This is true
// on the machine itself. It is also true in a container that uses the machine's network and mounts the machine's root
// (Options.Here).
func (h *Host) Here() bool { return h.isThisMachine() || h.options.Here }

func (h *Host) isThisMachine() bool { return h.Root == string(filepath.Separator) }

// Read returns the content of a regular file of at most 16 MiB. The trace of ctx records the read, so that Trace.Wait
// returns when the file is created, changed or deleted. If the file does not exist, the error is fs.ErrNotExist.
// Without read permission, the error is fs.ErrPermission.
func (h *Host) Read(ctx context.Context, path string) ([]byte, error) {
	h.track(ctx, path)
	data, err := h.content(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", clean.Text(path), err)
	}
	return data, nil
}

// Stat returns information on a file, or on the target of a symlink. It is tracked like Read.
func (h *Host) Stat(ctx context.Context, path string) (FileInfo, error) {
	h.track(ctx, path)
	info, err := h.stat(path)
	if err != nil {
		return FileInfo{}, fmt.Errorf("read %s: %w", clean.Text(path), err)
	}
	out := FileInfo{Mode: info.Mode(), Size: info.Size(), ModTime: info.ModTime()}
	out.UID, out.GID = h.ownerOf(path, info)
	if !info.Mode().IsRegular() {
		return out, nil
	}
	data, err := h.content(ctx, path)
	switch {
	case err == nil:
		out.Hash = masked.Hash(string(data))
	case context.Cause(ctx) != nil:
		return FileInfo{}, fmt.Errorf("read %s: %w", clean.Text(path), err)
	}
	return out, nil
}

func (h *Host) stat(path string) (fs.FileInfo, error) {
	rel, err := h.resolve(path)
	if err != nil {
		return nil, err
	}
	return h.files.Stat(rel)
}

// errNotRegular means that a path is not a regular file, but a directory, a device, a pipe or a socket.
var errNotRegular = errors.New("it is not a regular file")

func (h *Host) content(ctx context.Context, path string) ([]byte, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	rel, err := h.resolve(path)
	if err != nil {
		return nil, err
	}
	// Without O_NONBLOCK, opening a named pipe would wait for a writer.
	file, err := h.files.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, bare(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, bare(err)
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	}
	return whole(file, info)
}

// whole reads a regular file. info is the file's information.
func whole(file *os.File, info fs.FileInfo) ([]byte, error) {
	if info.Size() > fileLimit {
		return nil, fmt.Errorf("it is larger than %d MiB", fileLimit>>20)
	}
	data, err := io.ReadAll(io.LimitReader(file, fileLimit))
	return data, bare(err)
}

// bare removes the path from an error from package os, because the caller adds the path on the host.
func bare(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	var linkErr *os.LinkError
	if errors.As(err, &linkErr) {
		return linkErr.Err
	}
	return err
}
