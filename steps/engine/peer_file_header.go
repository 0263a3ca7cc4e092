package engine

import (
	"os"
	"time"

	"carrick/steps"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
)

// PeerFileHeader is the header of a facts file. It is read before the file is used.
type PeerFileHeader struct {
	Link, Context string // the link, and the other admin's name for their side
	ByPhrase      bool   // a passphrase decrypts the secrets
	Signer        string // fingerprint of the key that signed the file
}

// ReadPeerFileHeader reads the header of a facts file that describes a side of a new link. If the file can't be used,
// it returns a FileError.
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

// Here returns the sides for which this session can write a facts file. Sides that are known only from a facts file are
// omitted.
func (s *Session) Here() []steps.Side {
	var out []steps.Side
	for _, side := range steps.Sides {
		if !s.ends[side].absent() {
			out = append(out, side)
		}
	}
	return out
}
