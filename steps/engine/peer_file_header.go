package engine

import (
	"os"
	"time"

	"carrick/steps"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
)

// PeerFileHeader is what a facts file says about itself, before it is used.
type PeerFileHeader struct {
	Link, Context string // its link, and the other admin's name of their side
	ByPhrase      bool   // a passphrase decrypts its secrets
	Signer        string // fingerprint of the key that signed it
}

// ReadPeerFileHeader reads the header of a facts file that is to describe a side of a new link. A FileError says why
// the file can't be used.
func ReadPeerFileHeader(path string, g *steps.Guide, side steps.Side) (PeerFileHeader, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return PeerFileHeader{}, &linkfile.FileError{Path: path, Problem: linkfile.PlainFileError(err)}
	case !info.Mode().IsRegular():
		return PeerFileHeader{}, &linkfile.FileError{Path: path, Problem: "is not a regular file"}
	case info.Size() > facts.Max:
		return PeerFileHeader{}, &linkfile.FileError{Path: path, Problem: "is too large for a facts file"}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return PeerFileHeader{}, &linkfile.FileError{Path: path, Problem: linkfile.PlainFileError(err)}
	}
	f, err := facts.Decode(data)
	if err == nil {
		err = f.Fits(facts.Expects{
			Guide: g.Name, Link: f.Link, Side: string(side), Role: g.Sides[side].Name, Secrets: g.SecretFacts(side),
			Now: time.Now(),
		})
	}
	if err == nil {
		err = linkfile.CheckName(f.Link)
	}
	if err != nil {
		return PeerFileHeader{}, &linkfile.FileError{Path: path, Problem: err.Error()}
	}
	head := PeerFileHeader{Link: f.Link, Context: f.Context, Signer: f.Signer}
	head.ByPhrase = f.Sealed != nil && len(f.Sealed.For) == 1 && f.Sealed.For[0] == facts.ByPassphrase
	return head, nil
}

// Here returns the sides for which this session can write a facts file: those that are not known from one themselves.
func (s *Session) Here() []steps.Side {
	var out []steps.Side
	for _, side := range steps.Sides {
		if !s.ends[side].absent() {
			out = append(out, side)
		}
	}
	return out
}
