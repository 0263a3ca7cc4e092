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

// Host is a machine: files under a root folder, and commands. The root "/" is this machine; another folder stands for a
// machine, and has no commands. It is safe for concurrent use.
//
// Paths are absolute on the host. A symlink is followed as the host would follow it, so one to /etc/x leads to Root and
// then etc/x; nothing ever leads out of Root.
type Host struct {
	Root     string // absolute, without symlinks
	files    *os.Root
	watch    watch
	options  Options
	clusters clusters
}

// Options are what a host is opened with. The zero value is a machine as it
// stands.
type Options struct {
	// Run runs commands in place of this machine, for a folder that stands for one
	// and has commands, too: it is no mere folder then (IsFolder).
	Run func(ctx context.Context, name string, args ...string) (stdout, stderr string, err error)
	// Owner says whom a file belongs to; where it does not know, the system says so.
	Owner func(path string) (uid, gid int, ok bool)
	// ByRoot tells whether carrick is root there; nil: as the process is, and in a
	// folder whoever it is, is.
	ByRoot func() bool
	// Around is put around each write and removal, for who counts them or ends them.
	Around func(path string, change func() error) error
	// Here says that the folder is the root of the machine whose network this
	// process has: a container's mount of it.
	Here bool

	Clusters cluster.Options // how the clusters of kubeconfigs on the host are read
	Timeout  time.Duration   // of one request to those; 0: 10 s
}

// FileInfo is what a host says of a file.
type FileInfo struct {
	Mode     fs.FileMode
	UID, GID int // -1 where the system knows none
	Size     int64
	ModTime  time.Time
	Hash     string // of a regular file that may be read: as Masked.Hash of its content; else ""
}

// fileLimit is how large a file may be that is read.
const fileLimit = 16 << 20

// New returns the host whose root folder that is. The folder must be there.
func New(root string) (*Host, error) { return NewWith(root, Options{}) }

// NewWith is New with options.
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

// Close ends the watching of files, and the clusters that kubeconfigs of the host led to. Files that are read after it
// are an error.
func (h *Host) Close() {
	h.watch.close()
	h.clusters.close()
	_ = h.files.Close()
}

// IsFolder tells whether the host is only a folder that stands for one.
func (h *Host) IsFolder() bool { return !h.isThisMachine() && h.options.Run == nil }

// Here tells whether this process looks at the network as the host does: a connection that it makes is made from there.
// It is so on the machine itself, and in a container that has the machine's network and its root as a folder
// (Options.Here).
func (h *Host) Here() bool { return h.isThisMachine() || h.options.Here }

func (h *Host) isThisMachine() bool { return h.Root == string(filepath.Separator) }

// Read returns the content of a regular file of at most 16 MiB. The trace of ctx wakes when the file changes, appears
// or goes. A file that is not there is fs.ErrNotExist, one that may not be read fs.ErrPermission.
func (h *Host) Read(ctx context.Context, path string) ([]byte, error) {
	h.track(ctx, path)
	data, err := h.content(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", clean.Text(path), err)
	}
	return data, nil
}

// Stat describes a file, or what a symlink leads to. It is tracked as Read is.
func (h *Host) Stat(ctx context.Context, path string) (FileInfo, error) {
	h.track(ctx, path)
	info, err := h.stat(path)
	if err != nil {
		return FileInfo{}, fmt.Errorf("look at %s: %w", clean.Text(path), err)
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
		return FileInfo{}, fmt.Errorf("look at %s: %w", clean.Text(path), err)
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

// errNotRegular means that a path leads to a folder, a device, a pipe or a socket.
var errNotRegular = errors.New("it is not a regular file")

func (h *Host) content(ctx context.Context, path string) ([]byte, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	rel, err := h.resolve(path)
	if err != nil {
		return nil, err
	}
	// Opening a pipe must not wait for its writer.
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

// whole reads a regular file that info is of.
func whole(file *os.File, info fs.FileInfo) ([]byte, error) {
	if info.Size() > fileLimit {
		return nil, fmt.Errorf("it is larger than %d MiB", fileLimit>>20)
	}
	data, err := io.ReadAll(io.LimitReader(file, fileLimit))
	return data, bare(err)
}

// bare drops the path that the os package puts into its errors: the caller names it as the host knows it.
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
