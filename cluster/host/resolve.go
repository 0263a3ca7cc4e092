package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// errNotAbsolute means that a path was not given from the host's root on.
var errNotAbsolute = errors.New("the path is not absolute")

// mostLinks is how many symlinks a path may lead through, as on Linux.
const mostLinks = 40

// resolve returns where a path leads, relative to Root and without symlinks; what is not there yet stays as it is.
func (h *Host) resolve(name string) (string, error) {
	done, _, err := h.follow(name)
	return join(done), err
}

// follow takes a path step by step, and returns the steps that it leads to and the symlinks that it leads through. It
// is os.Root that keeps everything inside of Root: this only takes absolute symlinks as the host would, which os.Root
// refuses.
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
			return nil, nil, fmt.Errorf("it leads through more than %d symlinks", mostLinks)
		}
		target, err := h.files.Readlink(join(done))
		if err != nil {
			return nil, links, bare(err)
		}
		if !path.IsAbs(target) {
			target = path.Join("/", join(done[:len(done)-1]), target)
		}
		// The target may hold symlinks of its own, so it is looked at from the root on.
		todo, done = append(parts(target), todo...), nil
	}
	return done, links, nil
}

// parts are the steps from the root to a path; steps above the root lead nowhere.
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
