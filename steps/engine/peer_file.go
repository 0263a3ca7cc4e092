package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"carrick/cluster/host"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
)

// PeerFile is a side that is known only from the facts file that its admin provided. When the file is replaced, the new
// version is read at once.
type PeerFile struct {
	Path string

	host *host.Host // the file's directory
	keys facts.Keys
	want facts.Expects                         // except Now; mu guards Newest
	own  func(context.Context) (string, error) // returns the UID of the reader's cluster; nil if the reader has a host

	signer atomic.Pointer[string] // fingerprint of the required signer; nil if not confirmed yet

	mu   sync.Mutex
	text string // content when last read
	file *facts.File
	err  error // why the file can't be used, apart from its age
}

// OpenPeerFile reads a facts file and verifies it against want. It sets want.Now. If it rejects the file, the error
// contains the path and the reason. If signer is "", any key is accepted (see Unconfirmed).
func OpenPeerFile(path, signer string, keys facts.Keys, want facts.Expects) (*PeerFile, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, &linkfile.FileError{Path: path, Problem: linkfile.PlainFileError(err)}
	} else if info.IsDir() {
		return nil, &linkfile.FileError{Path: path, Problem: "is a directory, not a file"}
	} else if !info.Mode().IsRegular() {
		return nil, &linkfile.FileError{Path: path, Problem: "is not a regular file"}
	}
	host, err := host.New(filepath.Dir(path))
	if err != nil {
		return nil, &linkfile.FileError{Path: path, Problem: "its directory cannot be read: " + err.Error()}
	}
	h := &PeerFile{Path: path, host: host, keys: keys, want: want}
	if signer != "" {
		h.signer.Store(&signer)
	}
	if _, err := h.read(context.Background()); err != nil {
		host.Close()
		return nil, err
	}
	return h, nil
}

func (h *PeerFile) read(ctx context.Context) (*facts.File, error) {
	data, err := h.host.Read(ctx, "/"+filepath.Base(h.Path))
	if err != nil {
		return nil, &linkfile.FileError{Path: h.Path, Problem: linkfile.PlainFileError(err)}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file == nil && h.err == nil || h.text != string(data) {
		h.text = string(data)
		h.file, h.err = facts.Decode(data)
		if h.err == nil {
			h.file.Rename(h.want.Renamed)
			switch err := h.file.Unseal(h.keys); {
			case errors.Is(err, facts.ErrSealed) && len(h.keys) > 0:
				h.err = fmt.Errorf(
					"is encrypted for %s, and the given keys do not decrypt it: %s", listed(h.file.Sealed.For), opens(h.file),
				)
			case !errors.Is(err, facts.ErrSealed):
				h.err = err
			}
		}
	}
	if signer := h.signer.Load(); signer != nil && h.file != nil && h.file.Signer != *signer {
		return nil, &linkfile.FileError{Path: h.Path, Problem: otherSigner(h.file.Signer, *signer, h.want)}
	}
	if h.err != nil {
		return nil, &linkfile.FileError{Path: h.Path, Problem: h.err.Error()}
	}
	want := h.want
	want.Now = time.Now()
	if h.own != nil {
		if uid, err := h.own(ctx); err == nil { // if unknown, checks of that side report it
			want.Cluster = uid
		}
	}
	if err := h.file.Fits(want); err != nil {
		return nil, &linkfile.FileError{Path: h.Path, Problem: err.Error()}
	}
	if h.signer.Load() != nil && h.file.Taken.After(h.want.Newest) {
		h.want.Newest = h.file.Taken
	}
	tracked.Expires(ctx, h.file.Until)
	return h.file, nil
}

func (h *PeerFile) fact(ctx context.Context, f *steps.Fact) (any, error) {
	file, err := h.read(ctx)
	if err != nil {
		return nil, err
	}
	if f.Now {
		return nil, missingPeerFacts(
			"%s is not known: facts files do not contain it, and the other side is not available", f.DisplayName(),
		)
	}
	if f.Secret {
		return h.secret(file, f)
	}
	if v, ok := file.Facts[f.Name]; ok {
		return shaped(v), nil
	}
	if why, ok := file.Absent[f.Name]; ok {
		return nil, missingPeerFacts("%s (%s)", why, h.said(file))
	}
	if why, ok := file.Unread[f.Name]; ok {
		return nil, fmt.Errorf("%s could not be read when the file was written: %s (%s)", f.DisplayName(), why, h.said(file))
	}
	return nil, fmt.Errorf(
		"%s is not in the file: another version of carrick wrote it (%s)", f.DisplayName(), h.said(file),
	)
}

func (h *PeerFile) secret(file *facts.File, f *steps.Fact) (any, error) {
	if v, ok := file.Secret(f.Name); ok {
		return masked.New(v), nil
	}
	if why, ok := file.Absent[f.Name]; ok {
		return nil, missingPeerFacts("%s (%s)", why, h.said(file))
	}
	if file.Sealed != nil && slices.Contains(file.Sealed.Names, f.Name) {
		return nil, missingPeerFacts(
			"%s is encrypted in %s for %s: %s", f.DisplayName(), h.Path, listed(file.Sealed.For), opens(file),
		)
	}
	return nil, missingPeerFacts(
		"%s was left out of the file, because no recipient was given: the %s's admin runs carrick handover with --to",
		f.DisplayName(), file.Role,
	)
}

// opens returns what the user must do to decrypt a file's secrets.
func opens(file *facts.File) string {
	if slices.Equal(file.Sealed.For, []string{facts.ByPassphrase}) {
		return "pass the passphrase with --passphrase-file FILE"
	}
	return "pass the key with --identity FILE"
}

// Sealed returns why the secrets in the file can't be decrypted, or nil if they can.
func (h *PeerFile) Sealed(ctx context.Context) error {
	file, err := h.read(ctx)
	if err != nil || file.Opened() {
		return err
	}
	return &linkfile.FileError{
		Path: h.Path, Problem: fmt.Sprintf("is encrypted for %s: %s", listed(file.Sealed.For), opens(file)),
	}
}

// PeerFileFits returns an error if a facts file of this session can't be used.
func (s *Session) PeerFileFits(ctx context.Context) error {
	ctx = tracked.WithLooks(ctx, s.looks)
	for _, side := range steps.Sides {
		if h := s.ends[side].PeerFile; h != nil {
			if _, err := h.read(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// said returns the source of a value, such as "the provider's file of 2 Jan 22:51".
func (h *PeerFile) said(file *facts.File) string {
	return fmt.Sprintf("the %s's file of %s", file.Role, file.Taken.Local().Format("2 Jan 15:04"))
}

// verdict returns the verdict in the facts file. It returns a skip, because the check did not run in this session.
// Cells that depend on the check can run if the reported verdict holds.
func (h *PeerFile) verdict(ctx context.Context, check string) steps.Result {
	file, err := h.read(ctx)
	if err != nil {
		return steps.Errored(err)
	}
	t, ok := file.Checks[check]
	if !ok {
		return steps.Skipped("%s has no result for this check", h.said(file))
	}
	var saw steps.Status
	if saw.UnmarshalText([]byte(t.Status)) != nil {
		return steps.Skipped("%s has an unknown status: %s", h.said(file), t.Status)
	}
	return steps.Skipped("%s reports: %s: %s", h.said(file), t.Status, t.Found).Reporting(saw)
}

func (h *PeerFile) answer(ctx context.Context, q *steps.Question) (v any, from string) {
	file, err := h.read(ctx)
	if err != nil || q.Secret {
		return nil, ""
	}
	given, ok := file.Answers[q.Key]
	if !ok {
		return nil, ""
	}
	if v, err = q.Accept(given); err != nil {
		return nil, ""
	}
	return v, h.said(file)
}

// proposal returns the value of the fact that the question names as its proposal.
func (h *PeerFile) proposal(ctx context.Context, q *steps.Question) (v any, from string) {
	file, err := h.read(ctx)
	if err != nil || q.Secret {
		return nil, ""
	}
	if v, err = q.Accept(file.Facts[q.Proposes]); err != nil {
		return nil, ""
	}
	return v, h.said(file)
}

// Differences returns an error that lists the answers of a link that differ from those in the facts file of side's
// admin. It considers only answers on which both admins must agree, regardless of who decides them.
func (h *PeerFile) Differences(g *steps.Guide, side steps.Side, given steps.Given) error {
	file, err := h.read(context.Background())
	if err != nil {
		return err
	}
	var out []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		q, _ := g.Question(key)
		theirs, ok := file.Answers[key]
		if q == nil || q.Secret || !ok || q.On != side && (q.On != "" || q.NotFromPeer) {
			continue
		}
		v, err := q.Accept(theirs)
		if err != nil || q.Show(v) != q.Show(given[key]) {
			out = append(out, &linkfile.FileError{Path: h.Path, Key: "answers." + key, Problem: fmt.Sprintf(
				"the %s uses %s, but this link uses %s: set the same answer on both sides", file.Role, q.Show(theirs),
				q.Show(given[key]))})
		}
	}
	return errors.Join(out...)
}

func (h *PeerFile) Close() { h.host.Close() }

// shaped converts a decoded YAML value to the types that facts have.
func shaped(v any) any {
	if m, ok := v.(map[string]any); ok {
		for key, x := range m {
			m[key] = shaped(x)
		}
		return m
	}
	list, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]string, 0, len(list))
	for _, x := range list {
		s, ok := x.(string)
		if !ok {
			return v
		}
		out = append(out, s)
	}
	return out
}
