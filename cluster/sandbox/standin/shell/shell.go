// Package shell runs a container's script without a container. Its interpreter (mvdan.cc/sh) starts no program, and
// opens only files below the container's mounts, which are directories of this machine. A script therefore reads and
// writes real files, but cannot access anything else on this machine.
//
// No upstream: the shell and its programs replace busybox, whose source was not read. These are guesses:
//
//   - The programs and their options. The programs are cat, date, hostname, ls, mkdir, rm, seq, sleep, sync and touch.
//     Options are ignored.
//   - Error messages are Go's. busybox's messages begin with can't open or can't create, and end with the same reason,
//     such as Permission denied.
//   - The exit code is 127 for a program that does not exist, 1 for a failed program, and 2 for an invalid script.
//
// Known differences: ls without a directory prints nothing. sleep accepts one duration, but no days. seq accepts one or
// two numbers. rm and mkdir behave as with -rf and -p. Only the volumes exist, not even /tmp. Files belong to the user
// of the sandbox.
package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Script returns the script in words if words are a command line like sh -c SCRIPT. Otherwise it returns false.
func Script(words []string) (string, bool) {
	if len(words) < 3 || !slices.Contains([]string{"sh", "ash", "bash", "dash"}, path.Base(words[0])) ||
		!strings.HasPrefix(words[1], "-") || !strings.HasSuffix(words[1], "c") {
		return "", false
	}
	set := ""
	if options := strings.Trim(words[1], "-c"); options != "" {
		set = "set -" + options + "\n"
	}
	return set + words[2], true
}

// Box is the environment of a script.
type Box struct {
	Mounts      map[string]string // container path to directory on this machine
	Environment []string
	Host        string // output of hostname
	Out         io.Writer
}

// Run runs a script until it ends or ctx is done. It returns the exit code.
func (b *Box) Run(ctx context.Context, script string) int32 {
	parsed, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script), "sh")
	if err != nil {
		fmt.Fprintln(b.Out, err)
		return 2
	}
	runner, err := interp.New(
		interp.StdIO(nil, b.Out, b.Out), interp.Env(expand.ListEnviron(b.Environment...)),
		interp.OpenHandler(b.open), interp.StatHandler(b.stat), interp.ReadDirHandler2(b.list),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return b.exec }),
	)
	if err != nil {
		fmt.Fprintln(b.Out, "stand-in:", err)
		return 1
	}
	err = runner.Run(ctx, parsed)
	var status interp.ExitStatus
	switch {
	case errors.As(err, &status):
		return int32(status)
	case err != nil:
		fmt.Fprintln(b.Out, "stand-in:", err)
		return 1
	}
	return 0
}

// errOutside means that a path is outside of all mounts.
var errOutside = fmt.Errorf("%w (stand-in: only the pod's volumes exist)", fs.ErrNotExist)

// within returns the mount for a container path, and the path relative to it.
func (b *Box) within(name string) (root *os.Root, inside string, err error) {
	name = path.Clean(name)
	best := ""
	for mount := range b.Mounts {
		if (name == mount || strings.HasPrefix(name, strings.TrimSuffix(mount, "/")+"/")) && len(mount) > len(best) {
			best = mount
		}
	}
	if best == "" {
		return nil, "", errOutside
	}
	inside = strings.TrimPrefix(strings.TrimPrefix(name, best), "/")
	if inside == "" {
		inside = "."
	}
	root, err = os.OpenRoot(b.Mounts[best])
	return root, filepath.FromSlash(inside), err
}

// do opens the mount that contains the container path name, and passes it to the function with.
func (b *Box) do(what, name string, with func(root *os.Root, inside string) error) error {
	root, inside, err := b.within(name)
	if err == nil {
		err = with(root, inside)
		_ = root.Close()
	}
	var fault *fs.PathError
	if errors.As(err, &fault) {
		err = fault.Err
	}
	if err != nil {
		return &fs.PathError{Op: what, Path: name, Err: err}
	}
	return nil
}

func (b *Box) open(_ context.Context, name string, flag int, mode os.FileMode) (io.ReadWriteCloser, error) {
	if name == os.DevNull {
		return os.OpenFile(name, flag, mode)
	}
	var file *os.File
	err := b.do("open", name, func(root *os.Root, inside string) (err error) {
		file, err = root.OpenFile(inside, flag, mode)
		return err
	})
	if err != nil { // a nil *os.File in an interface is not nil
		return nil, err
	}
	return file, nil
}

func (b *Box) stat(_ context.Context, name string, follow bool) (info fs.FileInfo, err error) {
	err = b.do("stat", name, func(root *os.Root, inside string) (err error) {
		if info, err = root.Lstat(inside); follow {
			info, err = root.Stat(inside)
		}
		return err
	})
	return info, err
}

func (b *Box) list(_ context.Context, name string) (entries []fs.DirEntry, err error) {
	err = b.do("open", name, func(root *os.Root, inside string) (err error) {
		entries, err = fs.ReadDir(root.FS(), filepath.ToSlash(inside))
		return err
	})
	return entries, err
}
