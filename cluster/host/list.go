package host

import (
	"context"
	"fmt"
	"slices"

	"carrick/cluster/clean"
)

// List returns the sorted names of the entries of a directory. The trace of ctx records the read, so that Trace.Wait
// returns when an entry is created, changed or deleted. If the directory does not exist, the error is fs.ErrNotExist.
func (h *Host) List(ctx context.Context, name string) ([]string, error) {
	h.trackFolder(ctx, name)
	names, err := h.list(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", clean.Text(name), err)
	}
	return names, nil
}

func (h *Host) list(ctx context.Context, name string) ([]string, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	rel, err := h.resolve(name)
	if err != nil {
		return nil, err
	}
	folder, err := h.files.Open(rel)
	if err != nil {
		return nil, bare(err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	slices.Sort(names)
	return names, bare(err)
}
