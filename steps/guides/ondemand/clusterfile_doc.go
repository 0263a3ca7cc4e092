package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/clean"
	"carrick/steps"
)

type clusterDoc struct {
	path string
	v2   *yaml.Node // value of the key v2; nil if it is missing or not a mapping
	root *yaml.Node
	bad  []fileFault // faults that keep upstream from reading the file as intended
}

// fileFault is a fault in a file. If line is 0, the position of the fault is unknown.
type fileFault struct {
	line, column int
	says         string
	about        faultKind
}

// faultKind determines which check reports a fault.
type faultKind int

const (
	syntax faultKind = iota // upstream cannot read the file, or a part of it
	naming                  // upstream does not support the key in this mapping
	typing                  // upstream expects a value of another type
)

func (f fileFault) String() string {
	if f.line == 0 {
		return f.says
	}
	return fmt.Sprintf("line %d, column %d: %s", f.line, f.column, f.says)
}

// openClusterFile reads the link's cluster file, with the extension .yml or .yaml. If neither file exists, it returns
// an AbsentError.
func openClusterFile(ctx context.Context, e steps.Env) (clusterDoc, error) {
	at := clusterPath(e)
	for _, p := range []string{at, strings.TrimSuffix(at, ".yml") + ".yaml"} {
		text, err := e.Host.Read(ctx, p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return clusterDoc{path: p}, err
		}
		return parseClusterFile(p, text), nil
	}
	return clusterDoc{path: at}, steps.Absent("%s does not exist", at)
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parseClusterFile records a fault for everything that upstream's parser, Ruby's YAML.safe_load, rejects.
func parseClusterFile(at string, text []byte) clusterDoc {
	d := clusterDoc{path: at}
	var doc, more yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		d.bad = append(d.bad, fileFault{says: "is empty or contains only comments"})
		return d
	case err != nil:
		d.bad = append(d.bad, syntaxFault(err))
		return d
	}
	if dec.Decode(&more) == nil {
		d.note(&more, syntax, "a second document begins here: upstream reads only the first")
	}
	d.root = doc.Content[0]
	if d.root.Kind != yaml.MappingNode {
		d.note(d.root, syntax, "the file is not a mapping with the key v2")
		return d
	}
	d.noteRejected(d.root)
	key, v2 := entry(d.root, "v2")
	switch {
	case v2 == nil:
		d.bad = append(d.bad, d.withoutV2())
	case v2.Kind != yaml.MappingNode:
		d.note(key, syntax, "v2 is empty: are the lines below it indented?")
	default:
		d.v2 = v2
	}
	return d
}

func syntaxFault(err error) fileFault {
	f := fileFault{says: "is not valid YAML: " + yamlLine.ReplaceAllString(clean.Text(err.Error()), "")}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		_, _ = fmt.Sscan(m[1], &f.line)
		f.column = min(f.line, 1)
	}
	return f
}

func (d *clusterDoc) note(n *yaml.Node, kind faultKind, says string, args ...any) {
	d.bad = append(d.bad, fileFault{line: n.Line, column: n.Column, says: fmt.Sprintf(says, args...), about: kind})
}

// withoutV2 returns the fault for the missing key v2. If another top-level key is the likely cause, the fault names
// that key.
func (d *clusterDoc) withoutV2() fileFault {
	f := fileFault{
		line: d.root.Line, column: d.root.Column,
		says: "the top-level key v2 is missing, so upstream finds no cluster in the file",
	}
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		k := d.root.Content[i]
		switch {
		case strings.EqualFold(k.Value, "v2") || k.Value == "v1" || k.Value == "v3":
			return fileFault{
				line: k.Line, column: k.Column, says: fmt.Sprintf("the top-level key is %s, not v2", shownWord(k.Value)),
			}
		case keyAt(k.Value) != nil:
			return fileFault{
				line: k.Line, column: k.Column,
				says: fmt.Sprintf("%s is at the top level: move this key and its content under v2", k.Value),
			}
		}
	}
	return f
}

// noteRejected records the faults in n and its children: values that YAML.safe_load rejects, ERB, and duplicate keys.
func (d *clusterDoc) noteRejected(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.note(n, syntax, "upstream's YAML.safe_load rejects the alias *%s, and with it the whole file", n.Value)
		return
	case strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!"), n.Tag == "!!binary" &&
		n.Style&yaml.TaggedStyle != 0:
		d.note(n, syntax, "upstream's YAML.safe_load rejects the tag %s, and with it the whole file", n.Tag)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!timestamp" && n.Style == 0:
		d.note(
			n, syntax,
			"%s is a date in YAML, so upstream's YAML.safe_load rejects the whole file: put it in quotes",
			shownWord(n.Value),
		)
	case n.Kind == yaml.ScalarNode && n.Style == 0 && len(n.Value) > 1 && strings.HasPrefix(n.Value, ":"):
		d.note(
			n, syntax, "%s is a symbol in Ruby, so upstream's YAML.safe_load rejects the whole file: put it in quotes",
			shownWord(n.Value),
		)
	case n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "<%"):
		d.note(n, syntax, "%s looks like ERB, which is not evaluated in a cluster file", shownWord(n.Value))
	}
	seen := map[string]int{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if first, twice := seen[c.Value]; twice {
				d.note(c, syntax, "%s is already set in line %d: upstream uses the last value",
					shownWord(c.Value), first)
			}
			seen[c.Value] = c.Line
		}
		d.noteRejected(c)
	}
}

// entry returns the key and value for name in the mapping n, or nil if there are none. If name is set more than once,
// entry returns the last key and value, as Ruby does.
func entry(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			key, value = n.Content[i], n.Content[i+1]
		}
	}
	return key, value
}

// at returns the value at path p under v2, or nil if the value is missing or null. p must not contain lists.
func (d clusterDoc) at(p string) *yaml.Node {
	n := d.v2
	for _, name := range strings.Split(p, ".") {
		_, n = entry(n, name)
	}
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	return n
}

// text returns the scalar at path p under v2, or "" if there is no scalar.
func (d clusterDoc) text(p string) string {
	if n := d.at(p); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// place returns the position of path p for a finding, such as "FILE line 3".
func (d clusterDoc) place(p string) string {
	if n := d.at(p); n != nil {
		return fmt.Sprintf("%s line %d", d.path, n.Line)
	}
	return d.path
}

func (d clusterDoc) edit(p string) string {
	if n := d.at(p); n != nil {
		return fmt.Sprintf("vi +%d %s", n.Line, steps.Quoted(d.path))
	}
	return "vi " + steps.Quoted(d.path)
}

func (d clusterDoc) id() string { return strings.TrimSuffix(path.Base(d.path), path.Ext(d.path)) }

// shownWord quotes and truncates s for a finding.
func shownWord(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "…"
	}
	return fmt.Sprintf("%q", s) // makes a trailing CR visible
}
