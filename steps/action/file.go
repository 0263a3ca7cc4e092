package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/aymanbagabas/go-udiff"

	"carrick/cluster/failure"
	"carrick/cluster/host"
	"carrick/cluster/masked"
	"carrick/steps"
)

// ByHand is the manager in the conflict over a file that has been changed since carrick wrote it.
const ByHand = "another user"

// File writes one file on a host. It saves an existing file next to it, once, and undo restores it. A file that another
// user has changed since carrick wrote it is a conflict, like a field that another manager owns. Content that is taken
// over then is not saved: undo restores the file from before carrick, or deletes it.
//
// In a folder that stands for a machine, the file is also listed in the folder's INSTALL. If carrick is not root on the
// machine, or can't write for another reason, the plan says so (Item.Refused) and nothing is written.
type File struct {
	Path string // absolute, on the host
	// PathOf replaces Path if the path depends on answers; when they change, the file at the old path is undone.
	PathOf func(steps.Env) string
	Mode   fs.FileMode // 0: 0600
	Secret bool        // its content is never shown; mode 0600 at most
	// Content returns the expected content. It may read the existing file, to change a part of it.
	Content func(context.Context, steps.Env) (masked.Value, error)
	// Fits reports whether existing content is acceptable although it differs from Content, such as a token that others
	// renew. nil: no other content is.
	Fits func(have []byte) bool
	// Ours reports whether existing content was written by a component that carrick has set up: it may be overwritten and
	// undone. Content that fits is ours; nil: no other content is.
	Ours func(have []byte) bool
	// Freed reports whether a file that another user has changed no longer contains anything that carrick set: undo then
	// only removes its record. nil: undo keeps every such file.
	Freed func(have []byte) bool
}

// fileNow is the present state of a file and carrick's record of it.
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
	ours     bool // the content is carrick's, or that of a component that it has set up
	asBefore bool // it is as it was before carrick
	freed    bool // another user has removed what carrick set
}

// look reads everything that decides what happens to the file.
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

// read reads the file and determines whether it is carrick's.
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
// that was not saved, a run was interrupted before it wrote the file.
func (n *fileNow) changed() bool {
	return n.recorded && n.there && !n.ours && !n.asBefore && (n.rec.Before == "" || n.kept)
}

// keeps reports whether the existing file must be saved before it is overwritten.
func (n *fileNow) keeps() bool {
	if n.recorded && n.rec.Before == "" { // carrick created the file
		return false
	}
	if n.rec.Before == "" || !n.there || n.kept {
		return n.there && !n.ours && !n.kept
	}
	return !n.ours || sum(n.have) == n.rec.BeforeHash // interrupted, or only the mode differed
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

// item plans the file at its path.
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
		it.Diff = udiff.Unified(n.path, n.path, n.have, n.want.Reveal())
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

// mayWrite returns why the file can't be written, before anything is.
func (f File) mayWrite(ctx context.Context, env steps.Env, n fileNow) error {
	err := cmp.Or(env.Host.MayWrite(n.path), env.Host.MayWrite(recordPath(env)), mayList(ctx, env))
	if err != nil || !n.keeps() || n.rec.Before != "" {
		return err
	}
	if err := env.Host.MayWrite(beforePath(env, n.path)); err != nil {
		return err
	}
	// The obstacle may be a file that a link of the same name has saved.
	have, err := env.Host.Read(ctx, beforePath(env, n.path))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && string(have) == n.have:
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf(
		"%s already exists, and the existing %s would be saved there: move it away", beforePath(env, n.path), n.path,
	)
}

// Do writes the file, saves the previous one, and records both.
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
		if err := f.Undo(ctx, env, say); err != nil { // it keeps what another user has changed since
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

// write writes the record, the list, the saved previous file and the file, in this order. If a run ends in between,
// readers still see the old file, and everything written so far is correct. The next run writes it again, or an undo
// removes it.
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

// whyRefused explains in a plan why nothing can be written.
func whyRefused(env steps.Env, err error) string {
	if errors.Is(err, host.ErrNotRoot) {
		return "requires root: sudo carrick apply " + env.LinkFile()
	}
	return failure.Explain(err)
}

// sum returns the hash that Host.Remove expects.
func sum(s string) string { return masked.New(s).Hash() }

// RenderedFile is a file that an action writes on a host, and apply's record of it there.
type RenderedFile struct {
	Path, Content      string
	Mode               fs.FileMode
	RecordPath, Record string
}

// RenderFile renders the file of an action for the present state of the host, and writes nothing. It returns nil if the
// action writes no file.
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

// ChangedByOthers returns the path of an action's file if another user has changed it and it does not contain what
// carrick would write. Otherwise, or if the action writes no file or the file can't be read, it returns "".
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
