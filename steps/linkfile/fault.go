package linkfile

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`line (\d+): `)

// at returns the node at the path that keys describe, or the nearest existing parent of that node.
func at(n *yaml.Node, keys ...string) *yaml.Node {
	for _, k := range keys {
		next := findKey(n, k)
		if i, err := strconv.Atoi(k); err == nil && n.Kind == yaml.SequenceNode && i < len(n.Content) {
			next = n.Content[i]
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func fault(path string, n *yaml.Node, key, problem string) error {
	return &FileError{Path: path, Line: n.Line, Column: n.Column, Key: key, Problem: problem}
}

var textLine = regexp.MustCompile(`^line (\d+): `)

// faultInside returns the error for an invalid value. If problem names a line within a literal block, faultInside
// converts it to a line of the file.
func faultInside(path string, n *yaml.Node, key, problem string) error {
	m := textLine.FindStringSubmatch(problem)
	if m == nil || n.Style&yaml.LiteralStyle == 0 {
		return fault(path, n, key, problem)
	}
	line, _ := strconv.Atoi(m[1])
	return &FileError{Path: path, Line: n.Line + line, Column: 1, Key: key, Problem: strings.TrimPrefix(problem, m[0])}
}

// faultKey returns the error for an invalid key.
func faultKey(path string, root *yaml.Node, keys []string, problem string) error {
	parent := at(root, keys[:len(keys)-1]...)
	last := keys[len(keys)-1]
	for i := 0; i+1 < len(parent.Content); i += 2 {
		if parent.Content[i].Value == last {
			return fault(path, parent.Content[i], strings.Join(keys, "."), problem)
		}
	}
	return fault(path, parent, strings.Join(keys, "."), problem)
}

func findAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return n
	}
	for _, c := range n.Content {
		if a := findAlias(c); a != nil {
			return a
		}
	}
	return nil
}

// yamlFault adds a position to a parser's error. If the error has no position, yamlFault uses the first character that
// YAML does not allow.
func yamlFault(path string, data []byte, err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	msg = strings.TrimPrefix(msg, "unmarshal errors:\n  ")
	e := &FileError{Path: path, Problem: "is not valid YAML: " + msg}
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Problem = "is not valid YAML: " + strings.Replace(msg, m[0], "", 1)
	}
	e.Column = 1
	if e.Line == 0 {
		e.Line, e.Column = unfitCharacter(string(data))
	}
	return e
}

// unfitCharacter returns the line and column of the first character that YAML does not allow, or 1, 1 if there is none.
func unfitCharacter(text string) (line, column int) {
	line, column = 1, 1
	for _, r := range text {
		switch {
		case r == '\n':
			line, column = line+1, 1
			continue
		case unicode.IsControl(r) && r != '\t' && r != '\r' && r != '\u0085', r == unicode.ReplacementChar:
			return line, column
		}
		column++
	}
	return 1, 1
}

// unfitNode returns the first node that a link file must not contain, and the reason.
func unfitNode(n *yaml.Node) (*yaml.Node, string) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" {
		var v float64
		if n.Decode(&v) != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return n, "expected a finite number"
		}
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && (c.Kind != yaml.ScalarNode || c.ShortTag() != "!!str") {
			return c, "keys of a link file must be strings"
		}
		if at, problem := unfitNode(c); at != nil {
			return at, problem
		}
	}
	return nil, ""
}
