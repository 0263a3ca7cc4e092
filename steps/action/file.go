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

// ByHand stands for the manager in the conflict over a file that was changed since
// carrick wrote it.
const ByHand = "somebody else"

// File writes one file on a host. What stands there already is kept beside it, once, and comes back with the undo. One
// that somebody has changed since carrick wrote it is a conflict, as a field is that another manager owns. What is
// taken over then is not kept: an undo restores what was there before carrick, or deletes the file.
//
// In a folder that stands for a machine the file is listed in the folder's INSTALL, too. Where carrick is not root on
// the machine, or may not write for another reason, the plan says so (Item.Refused) and nothing is written at all.
type File struct {
	Path string // absolute, on the host
	// instead of Path, where answers decide; the file at the old path is taken back when they change
	PathOf func(steps.Env) string
	Mode   fs.FileMode // 0: 0600
	Secret bool        // its content is never shown; mode 0600 at the most
	// Content is what the file should hold. It may read what stands there, to change a part of it.
	Content func(context.Context, steps.Env) (masked.Value, error)
	// Fits tells whether what stands there is as it should be although it is not what Content gives: a token that is
	// renewed by others. nil: nothing else fits.
	Fits func(have []byte) bool
	// Ours tells whether what stands there was put there by what carrick has set up, though not by carrick: it may be
	// written over and taken back. What fits is ours; nil: nothing else is.
	Ours func(have []byte) bool
	// Freed reports whether nothing that carrick set is left in a file that another user has changed since: then an undo
	// only removes its record. nil: it leaves every such file.
	Freed func(have []byte) bool
}

// fileNow is a file as it stands, and what carrick knows of it.
type fileNow struct {
	path     string
	want     masked.Value
	have     string
	there    bool
	mode     fs.FileMode
	rec      record
	recorded bool // rec is of this path
	kept     bool // what stood there before is kept: rec.Before is there
	moved    bool // rec is of another path
	fits     bool // the content is as it should be
	ours     bool // the content is carrick's, or of what it has set up
	asBefore bool // it stands as before carrick
	freed    bool // another user has removed what carrick set
}

// look reads all that decides what happens to the file.
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

// read reads the file, and whether it is carrick's.
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

// changed tells whether somebody has changed the file since carrick wrote it. Where nothing was kept of what the record
// says was there, a run was cut short before it wrote the file.
func (n *fileNow) changed() bool {
	return n.recorded && n.there && !n.ours && !n.asBefore && (n.rec.Before == "" || n.kept)
}

// keeps tells whether what stands there is to be kept before it is written over.
func (n *fileNow) keeps() bool {
	if n.recorded && n.rec.Before == "" { // carrick created the file
		return false
	}
	if n.rec.Before == "" || !n.there || n.kept {
		return n.there && !n.ours && !n.kept
	}
	return !n.ours || sum(n.have) == n.rec.BeforeHash // cut short, or only the mode was another
}

// Plan compares the file with what it should be.
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

// item says what is to happen to the file at its path.
func (f File) item(ctx context.Context, env steps.Env, n fileNow) steps.Item {
	mode := f.mode()
	it := steps.Item{Verb: steps.Create, What: n.path, Hash: steps.Fingerprint(n.path, sum(n.want.Reveal()), mode)}
	switch {
	case n.fits && n.mode == mode && n.recorded && !listIsRight(ctx, env):
		return unlisted(it.Hash)
	case n.fits && n.mode == mode:
		return steps.Item{Verb: steps.Leave, What: n.path, Hash: it.Hash, Note: "is as it should be"}
	case n.there:
		it.Verb, it.Hash = steps.Update, steps.Fingerprint(n.path, sum(n.want.Reveal()), mode, sum(n.have), n.mode)
	}
	switch {
	case n.fits:
		it.Note = fmt.Sprintf("its mode becomes %#o; it is %#o", mode, n.mode)
	case f.Secret:
		it.Diff = "(hidden)\n"
	default:
		it.Diff = udiff.Unified(n.path, n.path, n.have, n.want.Reveal())
	}
	if !n.fits && n.changed() {
		it.Note = "it was changed since carrick wrote it; a take-over discards that change"
		it.Conflicts = []failure.Conflict{{Manager: ByHand, Field: "content"}}
	} else if !n.fits && n.keeps() {
		it.Note = "what stands there is kept in " + beforePath(env, n.path)
	}
	if err := f.mayWrite(ctx, env, n); err != nil {
		it.Refused, it.Note = true, whyRefused(env, err)
	}
	return it
}

// mayWrite says why the file could not be written, before anything is.
func (f File) mayWrite(ctx context.Context, env steps.Env, n fileNow) error {
	err := cmp.Or(env.Host.MayWrite(n.path), env.Host.MayWrite(recordPath(env)), mayList(ctx, env))
	if err != nil || !n.keeps() || n.rec.Before != "" {
		return err
	}
	if err := env.Host.MayWrite(beforePath(env, n.path)); err != nil {
		return err
	}
	// What stands in the way may be what a link of the same name has kept.
	have, err := env.Host.Read(ctx, beforePath(env, n.path))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && string(have) == n.have:
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf(
		"%s stands there already, and what stands in %s would be kept there: move it away", beforePath(env, n.path), n.path,
	)
}

// Do writes the file, keeps what stood there, and records both.
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
		if err := f.Undo(ctx, env, say); err != nil { // what somebody else has changed since is left, and is theirs
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

// write makes four writes, each of which may be the last: the record, the list, what stood there, the file. Until the
// file is written it is as before for who looks; what was written before it says no more than is so, and is written
// again by the next run, or goes with an undo.
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
			return fmt.Errorf("keep what stands in %s: %w", n.path, err)
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

// whyRefused says in a plan why nothing could be written.
func whyRefused(env steps.Env, err error) string {
	if errors.Is(err, host.ErrNotRoot) {
		return "only root may do this, and carrick does not run as root: sudo carrick apply " + env.LinkFile()
	}
	return failure.Explain(err)
}

// sum is the hash that Host.Remove asks for.
func sum(s string) string { return masked.New(s).Hash() }

// RenderedFile is a file that an action writes on a host, and the record that apply keeps of it there.
type RenderedFile struct {
	Path, Content      string
	Mode               fs.FileMode
	RecordPath, Record string
}

// RenderFile renders the file of an action as it would be written on the host as it is now, and writes nothing. nil:
// the action writes no file.
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

// ChangedByOthers is the path of an action's file, where another user has changed it and it does not contain what
// carrick would write. "": that is not so, the action writes no file, or the file can't be read.
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
