package linkfile

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"

	"carrick/steps"
)

// Schema is the published JSON schema of link files.
//
//go:embed link.schema.json
var Schema []byte

// Link is one use of a guide between two sides.
type Link struct {
	APIVersion string       `yaml:"apiVersion" json:"apiVersion"`
	Kind       string       `yaml:"kind" json:"kind"`
	Metadata   Meta         `yaml:"metadata" json:"metadata"`
	Guide      string       `yaml:"guide" json:"guide"`
	Local      EndpointSpec `yaml:"local,omitempty" json:"local"`
	Remote     EndpointSpec `yaml:"remote,omitempty" json:"remote"`
	Answers    steps.Given  `yaml:"answers,omitempty" json:"answers,omitempty"`

	Path string `yaml:"-" json:"-"` // the file that it was read from or is written to
	// Renamed has a notice for each answer in the file that uses an old name, such as "answers.network.join is now …".
	Renamed []string   `yaml:"-" json:"-"`
	node    *yaml.Node // as read; preserves the user's comments and order
}

// Meta contains the name of a link.
type Meta struct {
	Name string `yaml:"name" json:"name"`
}

// EndpointSpec describes one side. It is a context, a host, a facts file, or nothing.
type EndpointSpec struct {
	Context    string    `yaml:"context,omitempty" json:"context,omitempty"`
	Kubeconfig string    `yaml:"kubeconfig,omitempty" json:"kubeconfig,omitempty"`
	Host       *HostSpec `yaml:"host,omitempty" json:"host,omitempty"`
	Facts      string    `yaml:"facts,omitempty" json:"facts,omitempty"`
	Signer     string    `yaml:"signer,omitempty" json:"signer,omitempty"` // fingerprint of the key that signs Facts
	// Taken is the time at which the newest facts file that a change has used was written.
	Taken time.Time `yaml:"taken,omitempty" json:"taken,omitzero"`
}

// HostSpec is this machine if Root is "/". Otherwise it is a machine whose root file system is in the directory Root.
type HostSpec struct {
	Root string `yaml:"root" json:"root"`
	// Here is true if carrick runs in a container on the machine whose root is mounted at Root, and shares the machine's
	// network.
	Here bool `yaml:"here,omitempty" json:"here,omitempty"`
}

// IsZero reports whether the side is omitted.
func (e EndpointSpec) IsZero() bool { return e == EndpointSpec{} }

// Side returns the link's description of one side.
func (l *Link) Side(s steps.Side) *EndpointSpec {
	if s == steps.Local {
		return &l.Local
	}
	return &l.Remote
}

// Name returns the link's name.
func (l *Link) Name() string { return l.Metadata.Name }

var linkName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// MaxName is the maximum length of a link's name. It keeps `carrick/link.<name>` within the 63 characters of a label.
const MaxName = 50

// CheckName returns an error if name is not a valid name for a link.
func CheckName(name string) error {
	if len(name) > MaxName || !linkName.MatchString(name) {
		return fmt.Errorf(
			"%q is not a name for a link: use lower-case letters, digits and -, at most %d characters", name, MaxName,
		)
	}
	return nil
}

// New returns an empty link for a guide.
func New(guide, name string) *Link {
	return &Link{APIVersion: "carrick/v1alpha1", Kind: "Link", Metadata: Meta{name}, Guide: guide, Answers: steps.Given{}}
}

// FileError is a fault in a file, with its position.
type FileError struct {
	Path         string
	Line, Column int    // counted from 1; 0 means the whole file
	Key          string // such as "answers.network.port"
	Problem      string
}

func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString(e.Path)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

// Load reads a link file. Faults are FileErrors with line and column. Several faults are joined by errors.Join.
func Load(path string, guides []*steps.Guide) (*Link, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &FileError{Path: path, Problem: PlainFileError(err)}
	}
	return Parse(path, data, guides)
}

// File resolves a path in the link file. It expands ~/ and resolves relative paths against the directory of the link
// file.
func (l *Link) File(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return filepath.Join(filepath.Dir(l.Path), p)
}

// Save writes the link file atomically. Only the owner can read a new file. An existing file keeps its mode, comments
// and order.
func (l *Link) Save() error {
	if info, err := os.Lstat(l.Path); err == nil && !info.Mode().IsRegular() {
		return &FileError{Path: l.Path, Problem: "is not a regular file; carrick does not follow links here"}
	}
	data, err := l.Marshal()
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(l.Path, data, 0o600); err != nil {
		return &FileError{Path: l.Path, Problem: "cannot be written: " + PlainFileError(err)}
	}
	return nil
}

// Marshal returns the link as YAML.
func (l *Link) Marshal() ([]byte, error) {
	var fresh yaml.Node
	if err := fresh.Encode(l); err != nil {
		return nil, fmt.Errorf("write link: %w", err)
	}
	node := &fresh
	if l.node != nil {
		mergeNode(l.node, &fresh)
		node = l.node
	}
	keepLines(node)
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return nil, fmt.Errorf("write link: %w", err)
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil // a comment at the end has no newline
}

// KeepLayoutOf makes Save use the comments and the order of another link file.
func (l *Link) KeepLayoutOf(other *Link) { l.node = other.node }

// mergeNode updates the mapping old to the content of fresh. It changes only what differs.
func mergeNode(old, fresh *yaml.Node) {
	for i := 0; i+1 < len(fresh.Content); i += 2 {
		key, value := fresh.Content[i], fresh.Content[i+1]
		at := findKey(old, key.Value)
		switch {
		case at == nil:
			old.Content = append(old.Content, key, value)
		case at.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			mergeNode(at, value)
		case at.Kind != value.Kind || at.Value != value.Value || at.Kind == yaml.SequenceNode:
			value.HeadComment, value.LineComment = at.HeadComment, at.LineComment
			*at = *value
		}
	}
	kept := old.Content[:0]
	for i := 0; i+1 < len(old.Content); i += 2 {
		if findKey(fresh, old.Content[i].Value) != nil {
			kept = append(kept, old.Content[i], old.Content[i+1])
		}
	}
	old.Content = kept
}

// keepLines changes mappings and lists around a literal or folded block from flow style to block style, because flow
// style cannot contain such a block. It reports whether n contains such a block.
func keepLines(n *yaml.Node) bool {
	block := n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	for _, c := range n.Content {
		block = keepLines(c) || block
	}
	if block {
		n.Style &^= yaml.FlowStyle
	}
	return block
}

func findKey(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// PlainFileError describes an operating system error about a file in plain words, without the path.
func PlainFileError(err error) string {
	switch {
	case os.IsNotExist(err):
		return "no such file"
	case errors.Is(err, syscall.EISDIR):
		return "is a directory, not a file"
	case os.IsPermission(err):
		return "cannot be read or written: permission denied"
	}
	return Cause(err).Error()
}

// Cause removes the path from an error about a file, for a message that already contains the path.
func Cause(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}
