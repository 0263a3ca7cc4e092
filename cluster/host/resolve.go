package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// errNotAbsolute means that a path does not start at the host's root.
var errNotAbsolute = errors.New("the path is not absolute")

// mostLinks is the maximum number of symlinks in a path, as on Linux.
const mostLinks = 40

// resolve returns the target of a path, relative to Root and without symlinks. Missing components are kept unchanged.
func (h *Host) resolve(name string) (string, error) {
	done, _, err := h.follow(name)
	return join(done), err
}

// follow resolves a path component by component, and returns the components of its target and the symlinks on the way.
// os.Root keeps everything inside of Root. follow only resolves absolute symlinks as the host would, because os.Root
// refuses them.
func (h *Host) follow(name string) (done []string, links [][]string, err error) {
	if !path.IsAbs(name) {
		return nil, nil, errNotAbsolute
	}
	for todo := parts(name); len(todo) > 0; {
		done, todo = append(done, todo[0]), todo[1:]
		info, err := h.files.Lstat(join(done))
		if errors.Is(err, fs.ErrNotExist) {
			return append(done, todo...), links, nil
		}
		if err != nil {
			return nil, links, bare(err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if links = append(links, slices.Clone(done)); len(links) > mostLinks {
			return nil, nil, fmt.Errorf("it contains more than %d symlinks", mostLinks)
		}
		target, err := h.files.Readlink(join(done))
		if err != nil {
			return nil, links, bare(err)
		}
		if !path.IsAbs(target) {
			target = path.Join("/", join(done[:len(done)-1]), target)
		}
		// The target may contain symlinks itself, so it is resolved from the root.
		todo, done = append(parts(target), todo...), nil
	}
	return done, links, nil
}

// parts returns the components of a path from the root; ".." above the root has no effect.
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
