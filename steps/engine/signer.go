package engine

import (
	"context"
	"fmt"
	"time"

	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/facts"
)

// Signer is a key that signed a facts file of this session and that the user has not confirmed yet.
type Signer struct {
	Side        steps.Side
	Fingerprint string // SHA256:…, as ssh-keygen -l shows it
	Peer        string // the guide's name for that side
	Wrote       string // the file, and its author according to the file
}

// Question returns the question to ask before the key is stored.
func (s Signer) Question() string { return fmt.Sprintf("Is this the key of the %s's admin?", s.Peer) }

func (s Signer) String() string {
	return fmt.Sprintf("%s is signed with the key %s, which is not confirmed yet: compare the key with the %s's admin",
		s.Wrote, s.Fingerprint, s.Peer)
}

// Unconfirmed returns the signers that are not in the link file. Until a signer is confirmed, its file is only
// displayed. It is never used together with a secret.
func (s *Session) Unconfirmed(ctx context.Context) ([]Signer, error) {
	ctx = tracked.WithLooks(ctx, s.looks)
	var out []Signer
	for _, side := range steps.Sides {
		h := s.ends[side].PeerFile
		if h == nil || h.signer.Load() != nil {
			continue
		}
		file, err := h.read(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, Signer{
			Side: side, Fingerprint: file.Signer, Peer: s.guide.Sides[side].Name,
			Wrote: fmt.Sprintf("%s, written by %s on %s,", h.Path, file.Writer(), file.Taken.Local().Format("2 Jan 15:04")),
		})
	}
	return out, nil
}

// Confirm stores signers in the link file. Later facts files of their sides must then have the same signer. If a signer
// can't be stored, it is not confirmed.
func (s *Session) Confirm(signers ...Signer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, signer := range signers {
		spec := s.link.Side(signer.Side)
		spec.Signer = signer.Fingerprint
		if err := s.link.Save(); err != nil {
			spec.Signer = ""
			return err
		}
		s.ends[signer.Side].PeerFile.signer.Store(&signer.Fingerprint)
	}
	s.wake()
	return nil
}

// keepTaken stores the dates of the facts files that a change is about to use in the link file. A later run rejects
// older files, because they might be outdated.
func (s *Session) keepTaken(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, side := range steps.Sides {
		h := s.ends[side].PeerFile
		if h == nil || h.signer.Load() == nil {
			continue
		}
		file, err := h.read(ctx)
		spec := s.link.Side(side)
		if err != nil || !file.Taken.After(spec.Taken) {
			continue // a rejected file is not used
		}
		before := spec.Taken
		spec.Taken = file.Taken
		if err := s.link.Save(); err != nil {
			spec.Taken = before
			return fmt.Errorf(
				"%w; add %s.taken: %s to the link file, so that carrick rejects older facts files", err, side,
				file.Taken.Format(time.RFC3339Nano),
			)
		}
	}
	return nil
}

func (s *Session) unsure() bool {
	for _, end := range s.ends {
		if end.PeerFile != nil && end.PeerFile.signer.Load() == nil {
			return true
		}
	}
	return false
}

func (h *PeerFile) unsigned() error {
	if h.signer.Load() != nil {
		return nil
	}
	return h.unconfirmed()
}

func (h *PeerFile) unconfirmed() error {
	return missingPeerFacts("the key that signed %s is not confirmed yet; carrick apply asks you to confirm it", h.Path)
}

// otherSigner returns the message for a facts file whose signer is not the confirmed one.
func otherSigner(is, was string, want facts.Expects) string {
	return fmt.Sprintf(
		"is signed with another key than before: %s, not %s. Ask the %s's admin over another channel whether the key is "+
			"theirs. If it is, replace %s.signer in the link file, or pass --signer %s",
		is, was, want.Role,
		want.Side, is,
	)
}
