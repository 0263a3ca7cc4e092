package action

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"carrick/steps"
)

// CloseFolder removes the read and execute permissions of other users from a directory on a host, as chmod o-rx does.
// It keeps the directory open during the change, so that no one can replace it with a symlink. An undo restores the
// mode.
type CloseFolder struct {
	Title string
	Path  func(context.Context, steps.Env) (string, error)
}

const othersGetIn fs.FileMode = 0o005

func closing(dir string) []string { return []string{"chmod", "o-rx", dir} }

func (c CloseFolder) command(dir string, rec record) Command {
	had := rec.BeforeMode & othersGetIn
	if rec.ID == "" { // rec was written by a version of carrick that recorded neither ID nor mode
		had = othersGetIn
	}
	rights := map[fs.FileMode]string{0o004: "r", 0o001: "x"}[had]
	undo := []string{"chmod", "o+" + cmp.Or(rights, "rx"), dir}
	return Command{
		Title: c.Title, Run: closing(dir), UndoRun: undo,
		Done: func(ctx context.Context, env steps.Env) (bool, error) {
			info, err := env.Host.Stat(ctx, dir)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return false, nil
			case err != nil || info.Mode&othersGetIn != 0 || !rec.isCommand():
				return err == nil && info.Mode&othersGetIn == 0, err
			}
			now, err := env.Host.Folder(dir)
			return rec.ID == "" || rec.ID == now.ID, err
		},
		may: func(env steps.Env) error {
			_, err := env.Host.Folder(dir)
			return err
		},
		by: func(ctx context.Context, env steps.Env, line []string) error {
			if slices.Equal(line, undo) {
				return env.Host.Chmod(ctx, dir, rec.ID, 0, had)
			}
			return c.close(ctx, env, dir)
		},
	}
}

// close records the identity and the mode of the directory before it changes the mode.
func (c CloseFolder) close(ctx context.Context, env steps.Env, dir string) error {
	now, err := env.Host.Folder(dir)
	if err != nil {
		return err
	}
	rec := record{Run: closing(dir), Title: c.Title, Order: orderOf(env), ID: now.ID, BeforeMode: now.Mode.Perm()}
	if err := writeRecord(ctx, env, rec); err != nil {
		return err
	}
	return env.Host.Chmod(ctx, dir, now.ID, othersGetIn, 0)
}

func (c CloseFolder) now(ctx context.Context, env steps.Env) (Command, error) {
	dir, err := c.Path(ctx, env)
	return c.command(dir, record{}), err
}

// recorded returns the Command for the directory that was closed, regardless of the current answers. If no directory
// was closed, the bool is false.
func (c CloseFolder) recorded(ctx context.Context, env steps.Env) (Command, bool, error) {
	rec, found, err := readRecord(ctx, env)
	if err != nil || !found || len(rec.Run) != len(closing("")) {
		return Command{}, false, err
	}
	return c.command(rec.Run[len(rec.Run)-1], rec), true, nil
}

// Plan shows the change as a command line.
func (c CloseFolder) Plan(ctx context.Context, env steps.Env) (steps.Change, error) {
	command, err := c.now(ctx, env)
	if err != nil {
		return steps.Change{}, err
	}
	return command.Plan(ctx, env)
}

// Do records the directory and its mode before it closes the directory.
func (c CloseFolder) Do(ctx context.Context, env steps.Env, say steps.Progress) error {
	command, err := c.now(ctx, env)
	if err != nil {
		return err
	}
	return command.Do(ctx, env, say)
}

// PlanUndo shows the command that restores the mode.
func (c CloseFolder) PlanUndo(ctx context.Context, env steps.Env) (steps.Change, error) {
	command, found, err := c.recorded(ctx, env)
	if err != nil || !found {
		return steps.Change{}, err
	}
	return command.PlanUndo(ctx, env)
}

// Undo restores the mode if the path is still the same directory.
func (c CloseFolder) Undo(ctx context.Context, env steps.Env, say steps.Progress) error {
	command, found, err := c.recorded(ctx, env)
	if err != nil || !found {
		return err
	}
	return command.Undo(ctx, env, say)
}

// Export returns the command for a user to run manually.
func (c CloseFolder) Export(ctx context.Context, env steps.Env) ([]Exported, error) {
	command, err := c.now(ctx, env)
	if err != nil {
		return nil, err
	}
	return command.Export(ctx, env)
}
