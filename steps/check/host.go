package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"carrick/cluster"
	"carrick/steps"
)

// FileMode asserts that a file is there, and that it has no right beyond most: 0600 for what holds a secret.
func FileMode(ctx context.Context, h *cluster.Host, name string, most fs.FileMode, fix string) steps.Result {
	info, err := h.Stat(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return steps.Failed(name+" is not there", fix)
	case err != nil:
		return steps.Unseen(err)
	case info.Mode.Perm()&^most != 0:
		return steps.Failed(fmt.Sprintf("%s has mode %#o: more than %#o", name, info.Mode.Perm(), most), fmt.Sprintf("chmod %#o %s", most, steps.Quoted(name)))
	}
	return steps.Passed(fmt.Sprintf("%s has mode %#o", name, info.Mode.Perm()))
}

// OwnedByRoot asserts that a file, and each folder on the way to it, belongs to root and may be written by nobody else:
// what root runs or trusts. In a folder that stands for a machine owners say nothing, and it is a skip.
func OwnedByRoot(ctx context.Context, h *cluster.Host, name, fix string) steps.Result {
	if _, err := h.Stat(ctx, name); errors.Is(err, fs.ErrNotExist) {
		return steps.Failed(name+" is not there", fix)
	}
	for at := path.Clean(name); ; at = path.Dir(at) {
		info, err := h.Stat(ctx, at)
		switch {
		case err != nil:
			return steps.Unseen(err)
		case info.Mode.Perm()&0o022 != 0 && info.Mode&fs.ModeSticky == 0:
			return steps.Failed(fmt.Sprintf("%s has mode %#o: others than root may write it", at, info.Mode.Perm()), "chmod go-w "+steps.Quoted(at))
		case h.IsFolder():
		case info.UID != 0:
			return steps.Failed(fmt.Sprintf("%s belongs to uid %d, not to root", at, info.UID), "chown root:root "+steps.Quoted(at))
		}
		if at == "/" || at == "." {
			break
		}
	}
	if h.IsFolder() {
		return steps.Skipped("a folder stands for the machine: it does not say whom %s belongs to; run there: ls -l %s", name, steps.Quoted(name))
	}
	return steps.Passed(name + " and the folders above it belong to root, and nobody else may write them")
}
