package export

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"carrick/cmd/carrick/exit"
)

// Names lists the top-level entries of an export directory.
var Names = []string{"local", "remote", "files", "README.txt"}

// CheckFolder returns an error if dir cannot hold an export. Unless force is set, dir must be empty or must not exist.
// Callers check this before the first request to a cluster.
func CheckFolder(dir string, force bool) error {
	if dir == "" {
		return exit.Usagef("the name of the export directory is empty")
	}
	if at, err := os.Lstat(filepath.Clean(dir)); err == nil && at.Mode()&fs.ModeSymlink != 0 {
		to, _ := filepath.EvalSymlinks(dir)
		return exit.Usagef(
			"%s is a symlink, and carrick does not write through symlinks; name the target directory: %s", dir,
			cmp.Or(to, "its target does not exist"),
		)
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		parent, err := os.Stat(filepath.Dir(filepath.Clean(dir)))
		if err != nil || !parent.IsDir() {
			return exit.Usagef("%s: the parent directory does not exist; mkdir -p %s", dir, filepath.Dir(filepath.Clean(dir)))
		}
		return nil
	}
	if err != nil {
		return exit.Usagef("%s: %w", dir, exit.FileError(err))
	}
	if !info.IsDir() {
		return exit.Usagef("%s is a file; an export requires a directory", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return exit.Usagef("%s: %w", dir, exit.FileError(err))
	}
	if len(entries) > 0 && !force {
		return exit.Usagef(
			"%s is not empty; name another directory, or add --force, which replaces only local, remote, files and "+
				"README.txt there",
			dir,
		)
	}
	return nil
}

// Write writes an export atomically. It first writes to a temporary directory next to dir and then renames it.
func Write(dir string, t Tree, force bool) error {
	dir = filepath.Clean(dir)
	if err := CheckFolder(dir, force); err != nil { // dir could have changed since the caller checked it
		return err
	}
	_, err := os.Stat(dir)
	fresh := errors.Is(err, fs.ErrNotExist)
	around := dir // entries are renamed, so both paths must be on the same file system
	if fresh {
		around = filepath.Dir(dir)
	}
	stage, err := os.MkdirTemp(around, ".carrick-export-*")
	if err != nil {
		return exit.Usagef("%s: cannot be written: %w", around, exit.FileError(err))
	}
	made := filepath.Join(stage, "new")
	for name, f := range t {
		if err := writeAt(filepath.Join(made, filepath.FromSlash(name)), f); err != nil {
			return fmt.Errorf("nothing was written: %w", errors.Join(err, os.RemoveAll(stage)))
		}
	}
	if fresh {
		err = os.Rename(made, dir)
	} else {
		err = swap(dir, made, filepath.Join(stage, "old"))
	}
	if lost := (*notRestored)(nil); errors.As(err, &lost) {
		return fmt.Errorf("%s is only partly replaced; its old content is in %s: %w", dir, stage, err)
	}
	if err := errors.Join(err, os.RemoveAll(stage)); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	return nil
}

// notRestored is returned if a failed swap could not move the old entries back.
type notRestored struct{ err error }

func (e *notRestored) Error() string { return e.err.Error() }

func writeAt(path string, f file) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, f.content, f.mode); err != nil {
		return err
	}
	return os.Chmod(path, f.mode) // ignores the umask
}

// swap moves the old export entries from dir to old, and the new ones from made to dir. On error it restores the
// previous state.
func swap(dir, made, old string) (err error) {
	var undo []func() error
	defer func() {
		for i := len(undo) - 1; err != nil && i >= 0; i-- {
			if back := undo[i](); back != nil {
				err = &notRestored{errors.Join(err, back)}
			}
		}
	}()
	move := func(from, to string) error {
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
		undo = append(undo, func() error { return os.Rename(to, from) })
		return nil
	}
	if err := os.Mkdir(old, 0o755); err != nil {
		return err
	}
	for _, name := range Names {
		if err := move(filepath.Join(dir, name), filepath.Join(old, name)); err != nil {
			return err
		}
		if err := move(filepath.Join(made, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
