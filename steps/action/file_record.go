package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"carrick/cluster/masked"
	"carrick/steps"
)

// records is the directory on a host that records what each action of a link wrote or ran. A record contains paths,
// hashes and command lines, but never content. It serves the same purpose for files as the ownership label for objects.
const records = "/var/lib/carrick"

type record struct {
	Path string      `json:"path,omitempty"` // only for a File
	Hash string      `json:"hash,omitempty"` // hash of the content that was or will be written
	Was  string      `json:"was,omitempty"`  // hash of what carrick had written before that
	Mode fs.FileMode `json:"mode,omitempty"`

	Before     string      `json:"before,omitempty"` // where the previous file was saved
	BeforeHash string      `json:"beforeHash,omitempty"`
	BeforeMode fs.FileMode `json:"beforeMode,omitempty"`

	// Made lists the parent directories that carrick created for the file, outermost first. It omits the directories of
	// the records. If several files share such a directory, each of their records lists it. Undoing the last of these
	// files deletes the directory.
	Made []string `json:"made,omitempty"`

	Run   []string `json:"run,omitempty"` // only for a Command
	Title string   `json:"title,omitempty"`
	Ran   bool     `json:"ran,omitempty"`
	ID    string   `json:"id,omitempty"` // the directory that a CloseFolder closed; BeforeMode is its former mode

	Order int `json:"order"` // position of the action in its guide
}

func (r record) isCommand() bool { return len(r.Run) > 0 }

func readRecord(ctx context.Context, env steps.Env) (record, bool, error) {
	if env.Host == nil {
		return record{}, false, fmt.Errorf("the %s is not a machine", env.SideName())
	}
	return recordAt(ctx, env, recordPath(env))
}

func recordAt(ctx context.Context, env steps.Env, at string) (record, bool, error) {
	var rec record
	b, err := env.Host.Read(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, false, nil
	}
	if err != nil {
		return rec, false, fmt.Errorf("read carrick's record: %w", err)
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return rec, false, fmt.Errorf(
			"carrick's record %s cannot be read (%w); restore the record from a backup, or delete it; without the record "+
				"carrick cannot undo its changes",
			at, err,
		)
	}
	return rec, true, nil
}

// writeRecord must run before the change is made.
func writeRecord(ctx context.Context, env steps.Env, rec record) error {
	var err error
	if rec.Made, err = made(ctx, env, rec); err != nil {
		return err
	}
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := env.Host.Write(ctx, recordPath(env), masked.New(string(b)), 0o600); err != nil {
		return fmt.Errorf("record %s: %w", env.Action, err)
	}
	return writeList(ctx, env, "")
}

// forget deletes the record when nothing is left to undo. It updates the directory's INSTALL first. If a run is
// interrupted in between, the record remains and the next undo finds it.
func forget(ctx context.Context, env steps.Env) error {
	if err := writeList(ctx, env, recordPath(env)); err != nil {
		return err
	}
	rec, found, err := readRecord(ctx, env)
	if err != nil || !found {
		return err
	}
	// The record lists the directories, so it is deleted after them.
	if err := dropFolders(ctx, env, rec.Made); err != nil {
		return err
	}
	b, err := env.Host.Read(ctx, recordPath(env))
	if err != nil {
		return err
	}
	if err := env.Host.Remove(ctx, recordPath(env), sum(string(b))); err != nil {
		return err
	}
	return dropFolders(ctx, env, []string{records, path.Dir(recordPath(env))})
}

// made returns the directories above a record's file that do not exist or that carrick has created for other files.
func made(ctx context.Context, env steps.Env, rec record) ([]string, error) {
	all, err := allRecords(ctx, env, "")
	if err != nil {
		return nil, err
	}
	ours := map[string]bool{}
	for _, r := range all {
		for _, folder := range r.Made {
			ours[folder] = true
		}
	}
	var out []string
	for folder := path.Dir(rec.Path); folder != "/" && folder != "."; folder = path.Dir(folder) {
		_, err := env.Host.Stat(ctx, folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || ours[folder] {
			out = append(out, folder)
		}
	}
	slices.Reverse(out)
	return out, nil
}

// dropFolders deletes the directories that carrick created and that are now empty.
func dropFolders(ctx context.Context, env steps.Env, made []string) error {
	for _, folder := range slices.Backward(made) { // a directory comes after its parent
		if err := env.Host.RemoveFolder(ctx, folder); err != nil {
			return err
		}
	}
	return nil
}

func recordPath(env steps.Env) string { return path.Join(records, env.Link, env.Action+".json") }

func beforePath(env steps.Env, name string) string { return name + ".before-" + env.Link }

func orderOf(e steps.Env) int {
	if e.Runtime.Guide == nil {
		return 0
	}
	n := 0
	for i := range e.Runtime.Guide.Steps {
		for j := range e.Runtime.Guide.Steps[i].Actions {
			if n++; e.Runtime.Guide.Steps[i].Actions[j].Name == e.Action {
				return n
			}
		}
	}
	return 0
}
