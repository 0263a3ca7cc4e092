package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"

	"carrick/steps"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
)

// UsualGood is the default validity of a facts file. LongestGood is the maximum.
const (
	UsualGood   = 24 * time.Hour
	LongestGood = facts.MaxLife
)

// HandoverOptions specify what to write into a facts file, and for whom.
type HandoverOptions struct {
	Side steps.Side
	File string           // default: HandoverFile
	To   facts.Recipients // who can read the secrets; if empty, the secrets are omitted
	Good time.Duration    // default: UsualGood
	Key  *facts.Key       // signs the file; default: facts.OwnKey
}

// RecipientsOf parses the recipients of the secrets. A recipient is an age recipient (age1…) or an SSH public key.
// @FILE is a file with one recipient per line.
func RecipientsOf(texts ...string) (facts.Recipients, error) {
	var all []string
	for _, t := range texts {
		path, isFile := strings.CutPrefix(strings.TrimSpace(t), "@")
		if !isFile {
			all = append(all, t)
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return facts.Recipients{}, fmt.Errorf("@%s: %s", path, linkfile.PlainFileError(err))
		}
		before := len(all)
		for line := range strings.Lines(string(data)) {
			if l := strings.TrimSpace(line); l != "" && !strings.HasPrefix(l, "#") {
				all = append(all, l)
			}
		}
		if len(all) == before {
			return facts.Recipients{}, fmt.Errorf("@%s: contains no recipient", path)
		}
	}
	return facts.For(all)
}

// HandoverFile returns the default path of a side's facts file. It is in the directory of the link file.
func (s *Session) HandoverFile(side steps.Side) string {
	return filepath.Join(filepath.Dir(s.link.Path), s.link.Name()+"-"+s.guide.Sides[side].Name+".facts")
}

// WrittenFile is a facts file that was written.
type WrittenFile struct {
	Path string
	Says []string // lines that describe the content, what is omitted, and what to do with the file
}

// WriteHandover writes the facts file of an available side for the admin of the other side. If the file can't be
// written, WriteHandover returns a FileError.
func (s *Session) WriteHandover(ctx context.Context, o HandoverOptions) (*WrittenFile, error) {
	if o.File == "" {
		o.File = s.HandoverFile(o.Side)
	}
	if o.Good == 0 {
		o.Good = UsualGood
	}
	if err := s.mayWriteFacts(o.File); err != nil {
		return nil, err
	}
	if o.Key == nil {
		var err error
		if o.Key, err = facts.OwnKey(); err != nil {
			return nil, &linkfile.FileError{Path: o.File, Problem: "cannot be signed: " + err.Error()}
		}
	}
	h, err := s.Handover(ctx, o.Side, o.Good)
	if err != nil {
		return nil, err
	}
	data, err := h.Signed(o.Key, o.To)
	if err != nil {
		return nil, err
	}
	if err := renameio.WriteFile(o.File, data, 0o600, renameio.IgnoreUmask()); err != nil {
		return nil, &linkfile.FileError{Path: o.File, Problem: linkfile.PlainFileError(err)}
	}
	return &WrittenFile{Path: o.File, Says: h.says(o)}, nil
}

// mayWriteFacts returns an error unless path is unused or is an earlier facts file of the same link.
func (s *Session) mayWriteFacts(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return &linkfile.FileError{Path: path, Problem: "its directory: " + linkfile.PlainFileError(err)}
		}
		return nil
	}
	if err != nil {
		return &linkfile.FileError{Path: path, Problem: linkfile.PlainFileError(err)}
	}
	if !info.Mode().IsRegular() {
		return &linkfile.FileError{Path: path, Problem: "is not a regular file; choose another name"}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return &linkfile.FileError{Path: path, Problem: linkfile.PlainFileError(err)}
	}
	var f facts.File // of any version and signature
	if err := yaml.Unmarshal(data, &f); err != nil || f.Kind != facts.Kind || f.Link != s.link.Name() ||
		f.Guide != s.guide.Name {
		return &linkfile.FileError{
			Path: path, Problem: "already exists and is not a facts file of this link; choose another name",
		}
	}
	return nil
}

// says returns the lines to show to the user who has written a file.
func (h *Handover) says(o HandoverOptions) []string {
	f, to := h.File, o.To
	n := len(f.Facts)
	if len(to.Names) > 0 {
		n += len(h.Secrets)
	}
	out := []string{
		fmt.Sprintf("%s of the %s, valid until %s", steps.Plural(n, "fact"), f.Role, f.Until.Local().Format("2 Jan 15:04")),
		"signed with the key " + o.Key.Fingerprint() +
			": read the fingerprint to the other admin when carrick asks them to confirm the key",
	}
	names := strings.Join(slices.Sorted(maps.Keys(h.Secrets)), ", ")
	switch {
	case names == "":
		out = append(out, "contains no secrets")
	case len(to.Names) == 0:
		out = append(
			out, "left out, because no recipient was given: "+names+". Run carrick handover again with --to or --passphrase",
		)
	default:
		out = append(out, "encrypted for "+strings.Join(to.Names, ", ")+": "+names)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Unread)) {
		out = append(out, fmt.Sprintf("not included: %s: %s", name, f.Unread[name]))
	}
	return append(out, "Give the file to the other admin. Their link file needs:",
		"  guide: "+f.Guide, "  metadata: {name: "+f.Link+"}",
		fmt.Sprintf("  %s: {facts: %s}", f.Side, filepath.Base(o.File)))
}
