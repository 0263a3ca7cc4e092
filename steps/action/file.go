package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"carrick/cluster/diff"
	"carrick/cluster/failure"
	"carrick/cluster/host"
	"carrick/cluster/masked"
	"carrick/steps"
)

// ByHand is the manager in the conflict over a file that someone else changed after carrick wrote it.
const ByHand = "another user"

// File writes one file on a host. It saves an existing file once, and undo restores that file. If another user has
// changed the file since carrick wrote it, this is a conflict, as when another manager owns a field. Content that
// carrick takes over this way is not saved. Undo restores the file from before carrick, or deletes it.
//
// If a directory represents the machine, the directory's INSTALL also lists the file. If carrick can't write to a
// machine, for example because it is not root, the plan explains why (Item.Refused) and nothing is written.
type File struct {
	Path string // absolute, on the host
	// PathOf replaces Path if the path depends on answers. When the path changes, the file at the old path is undone.
	PathOf func(steps.Env) string
	Mode   fs.FileMode // 0 means 0600
	Secret bool        // the content is never shown; the mode is at most 0600
	// Content returns the expected content. It can read the existing file in order to change only a part of it.
	Content func(context.Context, steps.Env) (masked.Value, error)
	// Fits reports whether existing content is acceptable although it differs from Content. An example is a token that
	// another tool renews. If Fits is nil, only Content is acceptable.
	Fits func(have []byte) bool
	// Ours reports whether a component that carrick set up wrote the existing content. carrick is then allowed to
	// overwrite and undo it. Content for which Fits returns true always counts as written by carrick. If Ours is nil, no
	// other content does.
	Ours func(have []byte) bool
	// Freed reports whether a file that another user changed no longer contains anything that carrick set. An undo then
	// removes only the record of the file. If Freed is nil, an undo keeps every such file.
	Freed func(have []byte) bool
}

// fileNow is the current state of a file, with carrick's record of it.
type fileNow struct {
	path     string
	want     masked.Value
	have     string
	there    bool
	mode     fs.FileMode
	rec      record
	recorded bool // rec is for this path
	kept     bool // the previous file is saved: rec.Before exists
	moved    bool // rec is for another path
	fits     bool // the content is as expected
	ours     bool // carrick or a component that carrick set up wrote the content
	asBefore bool // the file is in its state from before carrick
	freed    bool // another user has removed everything that carrick wrote
}

func (f File) look(ctx context.Context, env steps.Env) (fileNow, error) {
	n := fileNow{path: f.Path}
	if f.PathOf != nil {
		n.path = f.PathOf(env)
	}
	want, err := f.Content(ctx, env)
	if err := errors.Join(err, env.Sound()); err != nil {
		return n, err
	}
	rec, found, err := readRecord(ctx, env)
	if err != nil {
		return n, err
	}
	n.want = want
	n.rec, n.recorded, n.moved = rec, found && rec.Path == n.path, found && rec.Path != n.path
	if n.moved {
		n.rec = record{}
	}
	if err := n.read(ctx, env, f); err != nil {
		return n, err
	}
	n.fits = n.there && (n.have == n.want.Reveal() || f.fits(n.have))
	if n.fits {
		n.want = masked.New(n.have)
	}
	return n, nil
}

func (n *fileNow) read(ctx context.Context, env steps.Env, f File) error {
	have, err := env.Host.Read(ctx, n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return n.readKept(ctx, env)
	}
	if err != nil {
		return err
	}
	info, err := env.Host.Stat(ctx, n.path)
	if err != nil {
		return err
	}
	n.have, n.there, n.mode = string(have), true, info.Mode.Perm()
	if err := n.readKept(ctx, env); err != nil {
		return err
	}
	hash := sum(n.have)
	n.ours = n.recorded && (hash == n.rec.Hash || hash == n.rec.Was || f.owns(n.have))
	n.freed = n.recorded && !n.ours && f.Freed != nil && f.Freed(have)
	n.asBefore = n.recorded && n.rec.Before != "" && hash == n.rec.BeforeHash && (n.mode == n.rec.BeforeMode ||
		hash != n.rec.Hash)
	return nil
}

func (n *fileNow) readKept(ctx context.Context, env steps.Env) error {
	if n.rec.Before == "" {
		return nil
	}
	_, err := env.Host.Stat(ctx, n.rec.Before)
	n.kept = err == nil
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// changed reports whether another user has changed the file since carrick wrote it. If the record names a previous file
// that was not saved, the last run was interrupted before it wrote the file.
func (n *fileNow) changed() bool {
	return n.recorded && n.there && !n.ours && !n.asBefore && (n.rec.Before == "" || n.kept)
}

func (n *fileNow) keeps() bool {
	if n.recorded && n.rec.Before == "" { // carrick created the file
		return false
	}
	if n.rec.Before == "" || !n.there || n.kept {
		return n.there && !n.ours && !n.kept
	}
	return !n.ours || sum(n.have) == n.rec.BeforeHash // the last run was interrupted, or only the mode differed
}

// Plan compares the file with its expected content.
func (f File) Plan(ctx context.Context, env steps.Env) (steps.Change, error) {
	n, err := f.look(ctx, env)
	if err != nil {
		return steps.Change{}, err
	}
	var c steps.Change
	if n.moved {
		old, err := f.PlanUndo(ctx, env)
		if err != nil {
			return c, err
		}
		c.Items = old.Items
	}
	c.Items = append(c.Items, f.item(ctx, env, n))
	return c, nil
}

func (f File) item(ctx context.Context, env steps.Env, n fileNow) steps.Item {
	mode := f.mode()
	it := steps.Item{Verb: steps.Create, What: n.path, Hash: steps.Fingerprint(n.path, sum(n.want.Reveal()), mode)}
	switch {
	case n.fits && n.mode == mode && n.recorded && !listIsRight(ctx, env):
		return unlisted(it.Hash)
	case n.fits && n.mode == mode:
		return steps.Item{Verb: steps.Leave, What: n.path, Hash: it.Hash, Note: "is up to date"}
	case n.there:
		it.Verb, it.Hash = steps.Update, steps.Fingerprint(n.path, sum(n.want.Reveal()), mode, sum(n.have), n.mode)
	}
	switch {
	case n.fits:
		it.Note = fmt.Sprintf("changes its mode to %#o from %#o", mode, n.mode)
	case f.Secret:
		it.Diff = "(hidden)\n"
	default:
		it.Diff = diff.Text(n.have, n.want.Reveal())
	}
	if !n.fits && n.changed() {
		it.Note = "changed since carrick wrote it; --take-over discards that change"
		it.Conflicts = []failure.Conflict{{Manager: ByHand, Field: "content"}}
	} else if !n.fits && n.keeps() {
		it.Note = "the existing file is saved as " + beforePath(env, n.path)
	}
	if err := f.mayWrite(ctx, env, n); err != nil {
		it.Refused, it.Note = true, whyRefused(env, err)
	}
	return it
}

// mayWrite returns why the file can't be written, or nil. It writes nothing.
func (f File) mayWrite(ctx context.Context, env steps.Env, n fileNow) error {
	err := cmp.Or(env.Host.MayWrite(n.path), env.Host.MayWrite(recordPath(env)), mayList(ctx, env))
	if err != nil || !n.keeps() || n.rec.Before != "" {
		return err
	}
	if err := env.Host.MayWrite(beforePath(env, n.path)); err != nil {
		return err
	}
	// The obstacle can be a file that a link of the same name has saved.
	have, err := env.Host.Read(ctx, beforePath(env, n.path))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && string(have) == n.have:
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf(
		"%s already exists, but carrick must save the existing %s there: move the file away", beforePath(env, n.path), n.path,
	)
}

// Do saves the previous file, writes the new one, and records both.
func (f File) Do(ctx context.Context, env steps.Env, say steps.Progress) error {
	n, err := f.look(ctx, env)
	if err != nil {
		return err
	}
	it := f.item(ctx, env, n)
	switch {
	case it.Refused:
		return fmt.Errorf("%s: %s", n.path, it.Note)
	case len(it.Conflicts) > 0 && !env.Apply.TakeOver:
		return &ConflictError{n.path, it.Conflicts}
	}
	if n.moved {
		if err := f.Undo(ctx, env, say); err != nil { // Undo keeps what another user has changed since
			return err
		}
	}
	if it.Verb == steps.Leave {
		return nil
	}
	if it.What == InstallList {
		err = writeList(ctx, env, "")
	} else {
		err = f.write(ctx, env, n)
	}
	if err != nil {
		return err
	}
	say.Did(it.Verb, it.What, it.Hash)
	return nil
}

// write writes the record, then the INSTALL list, then the saved previous file, and the file last. If a run is
// interrupted, the old file is still in place. The next run writes everything again, or an undo removes it.
func (f File) write(ctx context.Context, env steps.Env, n fileNow) error {
	rec := n.rec
	rec.Path, rec.Mode, rec.Order = n.path, f.mode(), orderOf(env)
	rec.Hash, rec.Was = sum(n.want.Reveal()), ""
	if n.ours {
		rec.Was = sum(n.have)
	}
	keeps := n.keeps()
	if keeps {
		rec.Before, rec.BeforeHash, rec.BeforeMode = beforePath(env, n.path), sum(n.have), n.mode
	}
	if err := writeRecord(ctx, env, rec); err != nil {
		return err
	}
	if keeps {
		if err := env.Host.Write(ctx, rec.Before, masked.New(n.have), 0o600); err != nil {
			return fmt.Errorf("save the existing %s: %w", n.path, err)
		}
	}
	return env.Host.Write(ctx, n.path, n.want, f.mode())
}

func (f File) fits(have string) bool { return f.Fits != nil && f.Fits([]byte(have)) }

func (f File) owns(have string) bool {
	return f.fits(have) || (f.Ours != nil && f.Ours([]byte(have)))
}

func (f File) mode() fs.FileMode {
	mode := f.Mode.Perm()
	if f.Secret {
		mode &= 0o600
	}
	if mode == 0 {
		mode = 0o600
	}
	return mode
}

func whyRefused(env steps.Env, err error) string {
	if errors.Is(err, host.ErrNotRoot) {
		return "requires root: sudo carrick apply " + env.LinkFile()
	}
	return failure.Explain(err)
}

// sum returns the hash that Host.Remove expects.
func sum(s string) string { return masked.New(s).Hash() }

// RenderedFile is a file that an action writes on a host, together with its record on that host.
type RenderedFile struct {
	Path, Content      string
	Mode               fs.FileMode
	RecordPath, Record string
}

// RenderFile renders the file of an action for the current state of the host. It writes nothing. If the action writes
// no file, it returns nil.
func RenderFile(ctx context.Context, env steps.Env, of steps.Doer) (*RenderedFile, error) {
	f, ok := of.(filed)
	if !ok {
		return nil, nil
	}
	n, err := f.look(ctx, env)
	if err != nil {
		return nil, err
	}
	out := &RenderedFile{Path: n.path, Content: n.want.Reveal(), Mode: f.mode(), RecordPath: recordPath(env)}
	b, err := json.Marshal(record{Path: out.Path, Hash: sum(out.Content), Mode: out.Mode, Order: orderOf(env)})
	out.Record = string(b)
	return out, err
}

// ChangedByOthers returns the path of an action's file if another user has changed the file and its content is not what
// carrick would write. In all other cases it returns "", including when the file can't be read.
func ChangedByOthers(ctx context.Context, env steps.Env, of steps.Doer) string {
	f, ok := of.(filed)
	if !ok {
		return ""
	}
	if n, err := f.look(ctx, env); err == nil && !n.fits && n.changed() {
		return n.path
	}
	return ""
}
