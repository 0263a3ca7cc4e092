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

// Names are the names of the entries that an export creates in its folder.
var Names = []string{"local", "remote", "files", "README.txt"}

// CheckFolder rejects a folder that an export cannot use, such as a non-empty one without force. Callers call it before
// any request to a cluster.
func CheckFolder(dir string, force bool) error {
	if dir == "" {
		return exit.Usagef("the folder of an export has no name")
	}
	if at, err := os.Lstat(filepath.Clean(dir)); err == nil && at.Mode()&fs.ModeSymlink != 0 {
		to, _ := filepath.EvalSymlinks(dir)
		return exit.Usagef(
			"%s is a symlink, and carrick writes nothing through links; name the folder itself: %s", dir,
			cmp.Or(to, "its target does not exist"),
		)
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		parent, err := os.Stat(filepath.Dir(filepath.Clean(dir)))
		if err != nil || !parent.IsDir() {
			return exit.Usagef("%s: the parent folder does not exist; mkdir -p %s", dir, filepath.Dir(filepath.Clean(dir)))
		}
		return nil
	}
	if err != nil {
		return exit.Usagef("%s: %w", dir, exit.FileError(err))
	}
	if !info.IsDir() {
		return exit.Usagef("%s is a file; an export needs a folder", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return exit.Usagef("%s: %w", dir, exit.FileError(err))
	}
	if len(entries) > 0 && !force {
		return exit.Usagef(
			"%s is not empty; name another folder, or add --force: it replaces local, remote, files and README.txt there and "+
				"leaves the rest",
			dir,
		)
	}
	return nil
}

// Write writes an export atomically: it prepares the export next to the destination, and then renames it.
func Write(dir string, t Tree, force bool) error {
	dir = filepath.Clean(dir)
	if err := CheckFolder(dir, force); err != nil { // the folder may have changed since the caller checked it
		return err
	}
	_, err := os.Stat(dir)
	fresh := errors.Is(err, fs.ErrNotExist)
	around := dir // existing entries of dir are moved within one file system
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

// notRestored means that moved entries could not be moved back.
type notRestored struct{ err error }

func (e *notRestored) Error() string { return e.err.Error() }

func writeAt(path string, f file) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, f.content, f.mode); err != nil {
		return err
	}
	return os.Chmod(path, f.mode) // independent of the umask
}

// swap moves existing entries of dir that have the names of an export to old, and replaces them with those in made. On
// an error it moves everything back.
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
