package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
	"carrick/steps"
)

// InstallList lists the contents of a directory that represents a machine. It states where to copy each file, with
// which mode and owner, and what to run afterwards. It is generated from the records of all links, so it changes only
// when the records change.
const InstallList = "/INSTALL"

// carrick recognizes its own list by installHead.
const installHead = `#!/bin/sh
# For root on the machine that this folder stands for: copy the folder there, and in it run: sh INSTALL
# carrick keeps this file. What is written into it by hand is lost.
set -e
`

var errOtherList = errors.New(
	InstallList + " in the directory was not written by carrick, but carrick requires this name: move the file away",
)

// mayList returns why the list can't be written, or nil. A real machine has no list.
func mayList(ctx context.Context, env steps.Env) error {
	if !env.Host.IsFolder() {
		return nil
	}
	have, err := env.Host.Read(ctx, InstallList)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return env.Host.MayWrite(InstallList)
	case err != nil:
		return err
	case !strings.HasPrefix(string(have), installHead):
		return errOtherList
	}
	return env.Host.MayWrite(InstallList)
}

// listIsRight reports whether the list matches the records.
func listIsRight(ctx context.Context, env steps.Env) bool {
	if !env.Host.IsFolder() {
		return true
	}
	all, err := allRecords(ctx, env, "")
	have, readErr := env.Host.Read(ctx, InstallList)
	return err == nil && readErr == nil && string(have) == installText(all)
}

// unlisted returns the plan item for a list that must be updated although nothing else changes.
func unlisted(hash string) steps.Item {
	return steps.Item{Verb: steps.Update, What: InstallList, Hash: hash, Note: "is out of date"}
}

// writeList updates the list from the records. It ignores the record at without, which is about to be deleted.
func writeList(ctx context.Context, env steps.Env, without string) error {
	if !env.Host.IsFolder() {
		return nil
	}
	all, err := allRecords(ctx, env, without)
	if err != nil {
		return err
	}
	have, err := env.Host.Read(ctx, InstallList)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch {
	case err == nil && !strings.HasPrefix(string(have), installHead):
		return errOtherList
	case len(all) > 0:
		return env.Host.Write(ctx, InstallList, masked.New(installText(all)), 0o644)
	case err == nil:
		return env.Host.Remove(ctx, InstallList, sum(string(have)))
	}
	return nil
}

// allRecords returns the records of all links except the one at without, in the order of their guides.
func allRecords(ctx context.Context, env steps.Env, without string) ([]record, error) {
	links, err := env.Host.List(ctx, records)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []record
	for _, link := range links {
		names, err := env.Host.List(ctx, path.Join(records, link))
		if err != nil {
			return nil, err
		}
		start := len(out)
		for _, name := range names {
			at := path.Join(records, link, name)
			if at == without || path.Ext(name) != ".json" {
				continue
			}
			rec, found, err := recordAt(ctx, env, at)
			if err != nil {
				return nil, err
			}
			if found {
				out = append(out, rec)
			}
		}
		of := out[start:]
		sort.SliceStable(of, func(i, j int) bool { return of[i].Order < of[j].Order })
	}
	return out, nil
}

func installText(all []record) string {
	var files, commands strings.Builder
	for _, r := range all {
		if r.isCommand() {
			fmt.Fprintf(&commands, "# %s\n%s\n", strings.Join(strings.Fields(clean.Text(r.Title)), " "), commandLine(r.Run))
			continue
		}
		owner := "-o root -g root"
		if r.Before != "" { // the file keeps its owner, which the directory might not show
			owner = fmt.Sprintf(`-o "$(stat -c %%u %[1]s)" -g "$(stat -c %%g %[1]s)"`, steps.Quoted(r.Path))
		}
		fmt.Fprintf(
			&files, "install -D %s -m %04o %s %s\n", owner, r.Mode.Perm(), steps.Quoted("."+r.Path), steps.Quoted(r.Path),
		)
	}
	text := installHead
	if files.Len() > 0 {
		text += "\n# files: owner, mode, from here, to there\n" + files.String()
	}
	if commands.Len() > 0 {
		text += "\n# then, in this order\n" + commands.String()
	}
	return text
}

func commandLine(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = steps.Quoted(w)
	}
	return strings.Join(out, " ")
}
