package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

var errNotAbsolute = errors.New("the path is not absolute")

// mostLinks is the maximum number of symlinks in a path, as on Linux.
const mostLinks = 40

// resolve returns the target of a path, relative to Root and without symlinks. It keeps components that do not exist.
func (h *Host) resolve(name string) (string, error) {
	done, _, _, err := h.follow(name)
	return join(done), err
}

// follow resolves the symlinks of a path component by component. It returns the components of the target, how many of
// them exist, and the symlinks. os.Root keeps all files inside Root, but rejects absolute symlinks. Therefore follow
// resolves them, as the host would.
func (h *Host) follow(name string) (done []string, there int, links [][]string, err error) {
	if !path.IsAbs(name) {
		return nil, 0, nil, errNotAbsolute
	}
	for todo := parts(name); len(todo) > 0; {
		done, todo = append(done, todo[0]), todo[1:]
		info, err := h.files.Lstat(join(done))
		if errors.Is(err, fs.ErrNotExist) {
			return append(done, todo...), len(done) - 1, links, nil
		}
		if err != nil {
			return nil, 0, links, bare(err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if links = append(links, slices.Clone(done)); len(links) > mostLinks {
			return nil, 0, nil, fmt.Errorf("it contains more than %d symlinks", mostLinks)
		}
		target, err := h.files.Readlink(join(done))
		if err != nil {
			return nil, 0, links, bare(err)
		}
		if !path.IsAbs(target) {
			target = path.Join("/", join(done[:len(done)-1]), target)
		}
		// The target can contain symlinks, too, so it is resolved from the root.
		todo, done = append(parts(target), todo...), nil
	}
	return done, len(done), links, nil
}

// parts returns the components of a path. ".." at the root has no effect.
func parts(name string) []string {
	cleaned := strings.Trim(path.Clean("/"+name), "/")
	if cleaned == "" {
		return nil
	}
	return strings.Split(cleaned, "/")
}

func join(steps []string) string {
	if len(steps) == 0 {
		return "."
	}
	return strings.Join(steps, "/")
}
