package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"carrick/cluster/host"
	"carrick/cluster/masked"
	"carrick/steps"
)

// PlanUndo returns what would be deleted or restored.
func (f File) PlanUndo(ctx context.Context, env steps.Env) (steps.Change, error) {
	n, found, err := f.lookBack(ctx, env)
	if err != nil || !found {
		return steps.Change{}, err
	}
	return steps.Change{Items: []steps.Item{n.undoItem(env)}}, nil
}

// lookBack returns the file that the record names. It reads no answers and no facts, because an undo must not depend on
// their current values.
func (f File) lookBack(ctx context.Context, env steps.Env) (fileNow, bool, error) {
	rec, found, err := readRecord(ctx, env)
	if err != nil || !found {
		return fileNow{}, false, err
	}
	n := fileNow{path: rec.Path, rec: rec, recorded: true}
	if err := n.read(ctx, env, f); err != nil {
		return n, true, err
	}
	return n, true, nil
}

// leftover is the note for a file that an interrupted run or another user has already undone.
const leftover = "only carrick's record is deleted"

func (n fileNow) undoItem(env steps.Env) steps.Item {
	it := steps.Item{Verb: steps.Delete, What: n.path}
	switch {
	case !n.there && n.kept:
		it.What, it.Note = recordPath(env), fmt.Sprintf(
			"%s no longer exists and is not restored; its original is kept in %s; %s", n.path, n.rec.Before,
			leftover,
		)
	case !n.there:
		it.What, it.Note = recordPath(env), fmt.Sprintf("%s does not exist; %s", n.path, leftover)
	case n.asBefore:
		it.What, it.Note = recordPath(env), fmt.Sprintf("%s already has its original content; %s", n.path, leftover)
	case n.freed:
		it.What, it.Note = recordPath(env), fmt.Sprintf("%s no longer contains carrick's changes; %s", n.path, leftover)
	case !n.ours:
		it.Verb, it.Left, it.Note = steps.Leave, true, "was changed by another user since carrick wrote it"
	case n.rec.Before != "" && !n.kept && sum(n.have) != n.rec.BeforeHash:
		it.Verb, it.Left = steps.Leave, true
		it.Note = fmt.Sprintf("cannot be restored: the saved copy %s is gone", n.rec.Before)
	case n.rec.Before != "":
		it.Verb, it.Note = steps.Update, "restored from "+n.rec.Before
	}
	it.Hash = steps.Fingerprint(it.Verb, n.rec, sum(n.have), n.mode)
	return it
}

// Undo deletes the file or restores the previous one. It deletes the record last.
func (f File) Undo(ctx context.Context, env steps.Env, say steps.Progress) error {
	n, found, err := f.lookBack(ctx, env)
	if err != nil || !found {
		return err
	}
	it := n.undoItem(env)
	if it.Verb == steps.Leave {
		say.Say("%s is kept: it %s", it.What, it.Note)
		return nil
	}
	if err := cmp.Or(env.Host.MayWrite(n.path), env.Host.MayWrite(recordPath(env)), mayList(ctx, env)); err != nil {
		if errors.Is(err, host.ErrNotRoot) {
			return fmt.Errorf("requires root: sudo carrick undo %s", env.LinkFile())
		}
		return err
	}
	env.Host.Tidy(n.path) // a killed run can leave its temporary file
	switch {
	case it.Verb == steps.Update:
		err = n.putBack(ctx, env)
	case it.What == n.path:
		err = env.Host.Remove(ctx, n.path, sum(n.have))
	case n.asBefore, n.freed && n.rec.Before != "":
		err = n.dropKept(ctx, env)
	}
	if err == nil {
		err = forget(ctx, env)
	}
	if err != nil {
		return err
	}
	say.Did(it.Verb, it.What, it.Hash)
	return nil
}

func (n fileNow) putBack(ctx context.Context, env steps.Env) error {
	old := n.have // if only the mode differed
	if n.kept {
		b, err := env.Host.Read(ctx, n.rec.Before)
		if err != nil {
			return fmt.Errorf("restore %s: %w", n.path, err)
		}
		if old = string(b); sum(old) != n.rec.BeforeHash { // the path can now be a symlink to a file that others can't read
			return fmt.Errorf(
				"restore %s: %s was changed since carrick saved it. Restore the file manually, then undo again",
				n.path, n.rec.Before,
			)
		}
	}
	if err := env.Host.Write(ctx, n.path, masked.New(old), n.rec.BeforeMode); err != nil {
		return fmt.Errorf("restore %s: %w", n.path, err)
	}
	return n.dropKept(ctx, env)
}

// dropKept deletes the saved file after it has been restored.
func (n fileNow) dropKept(ctx context.Context, env steps.Env) error {
	b, err := env.Host.Read(ctx, n.rec.Before)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return env.Host.Remove(ctx, n.rec.Before, sum(string(b)))
}
