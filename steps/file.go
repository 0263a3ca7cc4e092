package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/aymanbagabas/go-udiff"

	"carrick/cluster"
)

// records is where a host keeps what each action of a link wrote: path and
// hash, never content. It is to files what the mark is to objects.
const records = "/var/lib/carrick"

// File writes one file on a host.
type File struct {
	Path    string // absolute, on the host
	Mode    fs.FileMode
	Secret  bool // its content is never shown; mode 0600 at the most
	Content func(context.Context, Env) (cluster.Masked, error)
}

type record struct {
	Path   string `json:"path"`
	Hash   string `json:"hash"`
	Before string `json:"before,omitempty"` // where the file that stood there was kept

	BeforeHash string      `json:"beforeHash,omitempty"`
	BeforeMode fs.FileMode `json:"beforeMode,omitempty"`
}

// Plan compares the file with what it should be.
func (f File) Plan(ctx context.Context, env Env) (Change, error) {
	want, err := f.Content(ctx, env)
	if err != nil {
		return Change{}, err
	}
	item := Item{Verb: Create, What: f.Path, Hash: hash(f.Path, sum(want.Reveal()))}
	have, err := env.Host.Read(ctx, f.Path)
	switch {
	case err == nil && string(have) == want.Reveal():
		item.Verb, item.Note = Leave, "is as it should be"
	case err == nil:
		item.Verb, item.Note = Update, "what stands there is kept beside it"
		item.Hash = hash(f.Path, sum(want.Reveal()), sum(string(have)))
	case !errors.Is(err, fs.ErrNotExist):
		return Change{}, fmt.Errorf("read %s: %w", f.Path, err)
	}
	switch {
	case item.Verb == Leave:
	case f.Secret:
		item.Diff = "(hidden)\n"
	default:
		item.Diff = udiff.Unified(f.Path, f.Path, string(have), want.Reveal())
	}
	return Change{Items: []Item{item}}, nil
}

// Do writes the file, keeps what stood there, and records both.
func (f File) Do(ctx context.Context, env Env, say Progress) error {
	c, err := f.Plan(ctx, env)
	if err != nil || c.Items[0].Verb == Leave {
		return err
	}
	want, err := f.Content(ctx, env)
	if err != nil {
		return err
	}
	old, _, err := f.record(ctx, env)
	if err != nil {
		return err
	}
	rec := old
	rec.Path, rec.Hash = f.Path, sum(want.Reveal())
	if c.Items[0].Verb == Update {
		if err := f.keep(ctx, env, &rec, old.Hash); err != nil {
			return fmt.Errorf("keep %s: %w", f.Path, err)
		}
	}
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	// The record first: a crash between the two leaves a record of a hash that
	// no file has, which undo reads as nothing to take back.
	if err := env.Host.Write(ctx, recordPath(env), cluster.Mask(string(b)), 0o600); err != nil {
		return fmt.Errorf("record %s: %w", f.Path, err)
	}
	if err := env.Host.Write(ctx, f.Path, want, f.mode()); err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	say.Did(c.Items[0].Verb, f.Path, c.Items[0].Hash)
	return nil
}

// keep keeps what stands in the file beside it, unless that is what was written
// last.
func (f File) keep(ctx context.Context, env Env, rec *record, written string) error {
	have, err := env.Host.Read(ctx, f.Path)
	if err != nil || sum(string(have)) == written {
		return err
	}
	info, err := env.Host.Stat(ctx, f.Path)
	if err != nil {
		return err
	}
	rec.Before, rec.BeforeHash, rec.BeforeMode = f.Path+".before-"+env.Link, sum(string(have)), info.Mode.Perm()
	return env.Host.Write(ctx, rec.Before, cluster.Mask(string(have)), 0o600)
}

// Why nothing is left to be taken back: an undo that was cut short had come so
// far, or somebody else did it.
const (
	goneAlready = "is gone already"
	asBefore    = "stands as it did before"
)

// PlanUndo says what would be removed or put back.
func (f File) PlanUndo(ctx context.Context, env Env) (Change, error) {
	rec, ok, err := f.record(ctx, env)
	if err != nil || !ok {
		return Change{}, err
	}
	item := Item{Verb: Delete, What: rec.Path}
	have, err := env.Host.Read(ctx, rec.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		item.Verb, item.Note = Leave, goneAlready
	case err != nil:
		return Change{}, fmt.Errorf("read %s: %w", rec.Path, err)
	case sum(string(have)) != rec.Hash && sum(string(have)) == rec.BeforeHash:
		item.Verb, item.Note = Leave, asBefore
	case sum(string(have)) != rec.Hash:
		item.Verb, item.Note = Leave, "was changed by somebody else since"
	case rec.Before != "":
		item.Verb, item.Note = Update, "put back from "+rec.Before
	}
	item.Hash = hash(item.Verb, rec)
	return Change{Items: []Item{item}}, nil
}

// Undo removes the file, or puts back what stood there.
func (f File) Undo(ctx context.Context, env Env, say Progress) error {
	c, err := f.PlanUndo(ctx, env)
	if err != nil || len(c.Items) == 0 {
		return err
	}
	rec, _, err := f.record(ctx, env)
	if err != nil {
		return err
	}
	item := c.Items[0]
	switch item.Verb {
	case Leave:
		say.Say("%s is left: it %s", item.What, item.Note)
		return f.finish(ctx, env, rec, item.Note)
	case Update:
		old, err := env.Host.Read(ctx, rec.Before)
		if err != nil {
			return fmt.Errorf("put back %s: %w", rec.Path, err)
		}
		if err := env.Host.Write(ctx, rec.Path, cluster.Mask(string(old)), rec.BeforeMode); err != nil {
			return fmt.Errorf("put back %s: %w", rec.Path, err)
		}
		if err := env.Host.Remove(ctx, rec.Before, sum(string(old))); err != nil {
			return err
		}
	case Delete:
		if err := env.Host.Remove(ctx, rec.Path, rec.Hash); err != nil {
			return fmt.Errorf("remove %s: %w", rec.Path, err)
		}
	}
	say.Did(item.Verb, item.What, item.Hash)
	return f.forget(ctx, env)
}

// finish ends an undo that was cut short; what somebody else has changed stays
// as it is, with its record.
func (f File) finish(ctx context.Context, env Env, rec record, why string) error {
	if why == asBefore {
		if err := env.Host.Remove(ctx, rec.Before, rec.BeforeHash); err != nil && !errors.Is(err, cluster.ErrChanged) {
			return err
		}
	}
	if why != asBefore && why != goneAlready {
		return nil
	}
	return f.forget(ctx, env)
}

func (f File) forget(ctx context.Context, env Env) error {
	b, err := env.Host.Read(ctx, recordPath(env))
	if err != nil {
		return err
	}
	return env.Host.Remove(ctx, recordPath(env), sum(string(b)))
}

func (f File) record(ctx context.Context, env Env) (record, bool, error) {
	if env.Host == nil {
		return record{}, false, fmt.Errorf("%s: no machine stands on the %s", f.Path, env.SideName())
	}
	var rec record
	b, err := env.Host.Read(ctx, recordPath(env))
	if errors.Is(err, fs.ErrNotExist) {
		return rec, false, nil
	}
	if err != nil {
		return rec, false, fmt.Errorf("read the record of %s: %w", f.Path, err)
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return rec, false, fmt.Errorf("the record %s is broken: %w", recordPath(env), err)
	}
	return rec, true, nil
}

func recordPath(env Env) string { return path.Join(records, env.Link, env.Action+".json") }

func (f File) mode() fs.FileMode {
	if f.Secret {
		return f.Mode & 0o600
	}
	return f.Mode
}

// sum is the hash that Host.Remove asks for.
func sum(s string) string { return cluster.Mask(s).Hash() }
