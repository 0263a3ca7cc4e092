package ondemand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/masked"
	"carrick/steps"
)

// clusterFileText returns the existing cluster file with carrick's keys set, or a new file. If all keys already have
// the right values, it returns the file unchanged.
func clusterFileText(ctx context.Context, e steps.Env) (masked.Value, error) {
	have, err := e.Host.Read(ctx, clusterPath(e))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return masked.Value{}, err
	}
	if other := strings.TrimSuffix(clusterPath(e), ".yml") + ".yaml"; err != nil {
		if there, err := fileExists(ctx, e, other); err != nil {
			return masked.Value{}, err
		} else if there {
			return masked.Value{}, fmt.Errorf(
				"the cluster file's name ends in .yaml, but carrick writes a .yml file, so two cluster files would exist. Run on "+
					"the web node: mv %s %s",
				other,
				clusterPath(e),
			)
		}
	}
	if err := undisputed(ctx, e); err != nil {
		return masked.Value{}, err
	}
	out, err := withClusterKeys(clusterPath(e), have, e)
	return masked.New(string(out)), err
}

// withClusterKeys sets carrick's keys in have, the content of the cluster file. It preserves everything else, including
// comments. at is the path of the file.
func withClusterKeys(at string, have []byte, e steps.Env) ([]byte, error) {
	d := parseClusterFile(at, have)
	if len(bytes.TrimSpace(have)) > 0 && d.v2 == nil {
		return nil, fmt.Errorf(
			"edit %s: %s. Fix the file, or move it away: mv %s %s", at, d.bad[0], at, at+".old",
		)
	}
	fresh := d.v2 == nil
	if fresh {
		d.v2 = &yaml.Node{Kind: yaml.MappingNode}
		d.root = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "v2"}, d.v2}}
		d.root.HeadComment = "# " + at + ": read by Open OnDemand as plain YAML, without ERB."
	}
	changed := fresh
	for _, k := range clusterKeys {
		if k.write == nil {
			continue
		}
		moved, err := d.set(k.path, k.write(e))
		if err != nil {
			return nil, err
		}
		changed = changed || moved
	}
	if !changed {
		return have, nil
	}
	return encoded(d.root)
}

func encoded(root *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("---\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

// set sets the value at path p under v2 and reports whether the file changed. It ignores a nil value. A value of type
// drop or dropRelative can remove the key.
func (d *clusterDoc) set(p string, value any) (changed bool, err error) {
	have := d.at(p)
	switch value.(type) {
	case nil:
		return false, nil
	case drop:
		return d.drop(p), nil
	case dropRelative:
		return have != nil && !strings.HasPrefix(have.Value, "/") && d.drop(p), nil
	}
	var want yaml.Node
	if err := want.Encode(value); err != nil {
		return false, err
	}
	if want.Kind == yaml.ScalarNode && want.Tag == "!!str" {
		want.Style = yaml.DoubleQuotedStyle
	}
	if have != nil && sameYAML(have, &want) {
		return false, nil
	}
	parent, err := d.parent(p)
	if err != nil {
		return false, err
	}
	_, name := cutLast(p)
	key, old := entry(parent, name)
	if key == nil {
		parent.Content = append(parent.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, &want)
		return true, nil
	}
	want.LineComment, want.HeadComment, want.FootComment = old.LineComment, old.HeadComment, old.FootComment
	*old = want
	return true, nil
}

// drop removes the key at path p under v2 and reports whether the key existed.
func (d *clusterDoc) drop(p string) bool {
	above, name := cutLast(p)
	parent := d.at(above)
	key, _ := entry(parent, name)
	if key == nil {
		return false
	}
	for i := 0; i+1 < len(parent.Content); i += 2 {
		if parent.Content[i] == key {
			parent.Content = append(parent.Content[:i:i], parent.Content[i+2:]...)
			break
		}
	}
	return true
}

// parent returns the mapping that contains the key at path p. It creates missing mappings.
func (d *clusterDoc) parent(p string) (*yaml.Node, error) {
	n := unfolded(d.v2)
	above, _ := cutLast(p)
	for _, name := range strings.Split(above, ".") {
		key, next := entry(n, name)
		switch {
		case key == nil:
			next = &yaml.Node{Kind: yaml.MappingNode}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, next)
		case next.Tag == "!!null":
			*next = yaml.Node{Kind: yaml.MappingNode}
		case next.Kind != yaml.MappingNode:
			return nil, fmt.Errorf("%s line %d: %s is not a mapping, so carrick cannot set %s in it", d.path, next.Line, name, p)
		}
		n = unfolded(next)
	}
	return n, nil
}

// unfolded switches an empty mapping to block style, so that each new key gets its own line. It returns n.
func unfolded(n *yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		n.Style = 0
	}
	return n
}

// sameYAML reports whether a and b have the same types and values.
func sameYAML(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind == yaml.ScalarNode && (a.Tag != b.Tag || a.Value != b.Value) {
		return false
	}
	if a.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(a.Content); i += 2 {
			_, other := entry(b, a.Content[i].Value)
			if other == nil || !sameYAML(a.Content[i+1], other) {
				return false
			}
		}
		return true
	}
	for i := range a.Content {
		if !sameYAML(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// mountsWritten returns the answer clusterfile.mounts as a list. The list is empty if the answer is empty or invalid.
func mountsWritten(e steps.Env) any {
	out, err := mountList(e.Answers.Text("clusterfile.mounts"))
	if err != nil || out == nil {
		return []any{}
	}
	return out
}

func mountList(text string) ([]any, error) {
	var out []any
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	err := yaml.Unmarshal([]byte(text), &out)
	return out, err
}

// checkMounts validates the answer clusterfile.mounts with the linter for cluster files.
func checkMounts(text string) error {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil || len(n.Content) == 0 {
		return err
	}
	if n.Content[0].Kind != yaml.SequenceNode {
		return fmt.Errorf("line %d: expected a list of mounts", n.Content[0].Line)
	}
	var d clusterDoc
	d.noteRejected(n.Content[0])
	d.valueOf(keyAt("job.mounts"), "job.mounts", n.Content[0])
	d.mountsOf(n.Content[0])
	if len(d.bad) > 0 {
		return fmt.Errorf("line %d: %s", d.bad[0].line, d.bad[0].says)
	}
	return nil
}
