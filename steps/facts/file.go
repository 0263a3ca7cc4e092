// Package facts implements the file that the admin of one side gives to the other. Facts, answers and verdicts are
// unencrypted. Secrets are encrypted with age. The whole file is signed with an SSH key.
package facts

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// The header of a facts file.
const (
	Version = "carrick/v1alpha1"
	Kind    = "Facts"
)

// Max is the maximum size of a facts file in bytes. It is far above the size of any real file.
const Max = 4 << 20

// File is a facts file. It contains what carrick read from one side at one time.
type File struct {
	APIVersion string    `yaml:"apiVersion"`
	Kind       string    `yaml:"kind"`
	Guide      string    `yaml:"guide"`
	Link       string    `yaml:"link"`
	Side       string    `yaml:"side"` // the side that was read: local or remote
	Role       string    `yaml:"role"` // the guide's name for that side
	From       string    `yaml:"from,omitempty"`
	Context    string    `yaml:"context,omitempty"`
	Cluster    string    `yaml:"cluster,omitempty"` // UID of kube-system; "" for a host
	Taken      time.Time `yaml:"taken"`
	Until      time.Time `yaml:"until"`

	Answers map[string]any    `yaml:"answers,omitempty"` // the answers of the link file, without secrets
	Facts   map[string]any    `yaml:"facts,omitempty"`   // by name, without secrets
	Absent  map[string]string `yaml:"absent,omitempty"`  // what does not exist, or not yet, and why
	Unread  map[string]string `yaml:"unread,omitempty"`  // what could not be read, and why
	Checks  map[string]Told   `yaml:"checks,omitempty"`  // the verdicts of that side
	Sealed  *Sealed           `yaml:"sealed,omitempty"`

	Signer string `yaml:"-"` // fingerprint of the key that signed the file; Decode sets it

	secrets map[string]string // decrypted from Sealed
}

// Rename replaces old names of checks and answers with the current names. names maps old names to new names.
func (f *File) Rename(names map[string]string) {
	for old, now := range names {
		rename(f.Answers, old, now)
		rename(f.Checks, old, now)
	}
}

func rename[V any](m map[string]V, old, now string) {
	v, ok := m[old]
	if _, both := m[now]; !ok || both {
		return
	}
	delete(m, old)
	m[now] = v
}

// Told is a verdict of the side that wrote the file.
type Told struct {
	Status string `yaml:"status"`
	Found  string `yaml:"found,omitempty"`
}

// ErrForm is returned for a file that is not a facts file or has an unknown version.
var ErrForm = errors.New("is not a facts file")

// Encode returns the file as YAML, signed with key.
func (f *File) Encode(key *Key) ([]byte, error) {
	body, err := yaml.Marshal(f)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf(
		"# Facts of the %s, for the admin of the other side. Written by carrick handover.\n", oneWord(f.Role),
	)
	return key.sign(append([]byte(head), body...))
}

// Decode reads a facts file and verifies its signature. The caller must decide whether to trust the key.
func Decode(data []byte) (*File, error) {
	if len(data) > Max {
		return nil, fmt.Errorf("%w: it is larger than 4 MiB", ErrForm)
	}
	// Mail programs on Windows can change line endings to CRLF. The signed text has only LF.
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || !flat(&doc, 0) {
		return nil, fmt.Errorf("%w: expected a YAML document with kind: %s", ErrForm, Kind)
	}
	var head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	if err := yaml.Unmarshal(data, &head); err != nil || head.Kind != Kind {
		return nil, fmt.Errorf("%w: expected a YAML document with kind: %s", ErrForm, Kind)
	}
	if head.APIVersion != Version {
		return nil, fmt.Errorf(
			"%w that this version of carrick reads: its apiVersion is %q, not %s", ErrForm, said(head.APIVersion, 60), Version,
		)
	}
	signed, signer, err := verified(data)
	if err != nil {
		return nil, err
	}
	f := &File{Signer: signer}
	d := yaml.NewDecoder(bytes.NewReader(signed))
	d.KnownFields(true)
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrForm, said(strings.TrimPrefix(err.Error(), "yaml: "), 300))
	}
	return f, nil
}

// deepest is the maximum nesting of values in a file.
const deepest = 20

// flat reports whether a document has no aliases and no deeper nesting than carrick writes. Without this limit, a small
// file could expand to a huge document.
func flat(n *yaml.Node, depth int) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || depth > deepest {
		return false
	}
	for _, c := range n.Content {
		if !flat(c, depth+1) {
			return false
		}
	}
	return true
}

// Expects lists the properties that a reader requires of a file.
type Expects struct {
	Guide, Link string
	Side        string
	Role        string
	Cluster     string   // UID of the reader's own cluster; "" if not known
	Secrets     []string // names of facts that must be sealed
	Now         time.Time
	Newest      time.Time // when the newest file used so far was written; zero if none was used
	// Renamed maps old names of checks and answers to the current names.
	Renamed map[string]string
}

// MaxLife is the maximum validity of a file. A reader rejects a file with a longer validity, so its writer can't extend
// it.
const MaxLife = 30 * 24 * time.Hour

// skew is the tolerated difference between two admins' clocks.
const skew = 5 * time.Minute

// Fits returns why a file does not meet the expectations, or nil if it does.
func (f *File) Fits(x Expects) error {
	switch {
	case f.Guide != x.Guide:
		return fmt.Errorf("is for guide %s; this link uses guide %s", oneWord(f.Guide), x.Guide)
	case f.Link != x.Link:
		return fmt.Errorf(
			"is for link %s, but this link is named %s: both admins must use the same name (metadata.name)", oneWord(f.Link),
			x.Link,
		)
	case f.Side != x.Side:
		return fmt.Errorf("is from the %s; expected the facts of the %s", oneWord(f.Role), x.Role)
	case x.Cluster != "" && f.Cluster == x.Cluster:
		return fmt.Errorf("is from the same cluster as the other side of this link (kube-system %s)", x.Cluster)
	case f.Taken.After(x.Now.Add(skew)):
		return fmt.Errorf(
			"was written at %s, which is in the future: one of the two clocks is wrong", f.Taken.Format(time.RFC3339),
		)
	case f.open(x.Secrets) != "":
		return fmt.Errorf(
			"contains a secret that is not encrypted (%s): anyone who has seen the file can use the secret. Replace the "+
				"secret, then ask for a file written by carrick handover --to",
			f.open(x.Secrets),
		)
	case f.Until.Sub(f.Taken) > MaxLife:
		return fmt.Errorf("is valid from %s until %s, longer than the maximum of %d days; ask for a new file",
			f.Taken.Format(time.RFC3339), f.Until.Format(time.RFC3339), MaxLife/(24*time.Hour))
	case x.Now.After(f.Until):
		return fmt.Errorf(
			"has expired: written %s, valid until %s; ask its writer to run carrick handover again",
			f.Taken.Format(time.RFC3339),
			f.Until.Format(time.RFC3339),
		)
	case f.Taken.Before(x.Newest):
		return fmt.Errorf(
			"is older than the last file used: this file was written %s, the last one %s. Ask the %s's admin to run carrick "+
				"handover again. If the clock of the last file was wrong, delete %s.taken from the link file and run carrick again",
			f.Taken.Format(time.RFC3339), x.Newest.Format(time.RFC3339), x.Role, x.Side,
		)
	}
	return nil
}

// Writer returns the user who wrote the file, according to the file.
func (f *File) Writer() string { return oneWord(f.From) }

// open returns the first of the named secret facts that the file contains unencrypted, or "" if there is none.
func (f *File) open(secrets []string) string {
	for _, name := range secrets {
		if _, ok := f.Facts[name]; ok {
			return name
		}
	}
	return ""
}

// oneWord shortens and cleans untrusted text from a file. The result can neither flood a message nor control a
// terminal.
func oneWord(s string) string {
	if s = strings.ReplaceAll(said(s, 60), " ", "_"); s == "" {
		return "(none)"
	}
	return s
}

// said removes control characters and line breaks from s. It truncates the result to the given maximum length.
func said(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
