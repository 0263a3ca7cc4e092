package linkfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"carrick/cluster/nearest"
	"carrick/steps"
)

// maxLinkFile is the maximum size of a link file in bytes. It is far above the size of any real file.
const maxLinkFile = 1 << 20

// Parse parses a link file. path is only used in error messages.
func Parse(path string, data []byte, guides []*steps.Guide) (*Link, error) {
	if len(data) > maxLinkFile {
		return nil, &FileError{Path: path, Problem: "is too large for a link file (maximum 1 MiB)"}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, yamlFault(path, data, err)
	}
	if doc.Kind == 0 || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, &FileError{
			Path: path, Line: 1, Column: 1, Problem: "is not a link file: expected a YAML mapping with kind: Link",
		}
	}
	root := doc.Content[0]
	renamed := rename(root, guides)
	if at := findAlias(root); at != nil {
		return nil, fault(path, at, "", "anchors and aliases are not allowed in a link file")
	}
	if at, problem := unfitNode(root); at != nil {
		return nil, fault(path, at, "", problem)
	}
	var plain map[string]any
	if err := root.Decode(&plain); err != nil { // also reports duplicate keys
		return nil, yamlFault(path, data, err)
	}
	if err := checkSchema(path, root, plain); err != nil {
		return nil, err
	}
	l := &Link{Path: path, Renamed: renamed, node: root}
	if err := root.Decode(l); err != nil {
		return nil, yamlFault(path, data, err)
	}
	if err := checkLink(path, root, l, guides); err != nil {
		return nil, err
	}
	return l, nil
}

// rename replaces old names of answers with the current names. It returns a notice for each.
func rename(root *yaml.Node, guides []*steps.Guide) []string {
	guide, answers := findKey(root, "guide"), findKey(root, "answers")
	if guide == nil || answers == nil || answers.Kind != yaml.MappingNode {
		return nil
	}
	g, err := steps.FindGuide(guides, guide.Value)
	if err != nil {
		return nil // checkLink reports it
	}
	var out []string
	for i := 0; i < len(answers.Content); i += 2 {
		key := answers.Content[i]
		if now := g.Current(key.Value); now != key.Value {
			out = append(out, fmt.Sprintf("answers.%s is now %s; the old name still works", key.Value, now))
			key.Value = now
		}
	}
	return out
}

// checkLink validates the guide and its answers. The schema cannot validate them.
func checkLink(path string, root *yaml.Node, l *Link, guides []*steps.Guide) error {
	var faults []error
	if err := CheckName(l.Metadata.Name); err != nil {
		faults = append(faults, fault(path, at(root, "metadata", "name"), "metadata.name", err.Error()))
	}
	guide, err := steps.FindGuide(guides, l.Guide)
	if err != nil {
		return inOrder(append(faults, fault(path, at(root, "guide"), "guide", err.Error())))
	}
	for _, key := range slices.Sorted(maps.Keys(l.Answers)) {
		where := at(root, "answers", key)
		q, _ := guide.Question(key)
		if q == nil {
			faults = append(
				faults, fault(path, where, "answers."+key, "guide "+guide.Name+" has no such question"+meant(key, guide)),
			)
			continue
		}
		if q.Secret {
			faults = append(
				faults,
				fault(path, where, "answers."+key, "is secret and must not be in a file; pass it with --secret "+key+"=@FILE"),
			)
			continue
		}
		v, err := q.Accept(l.Answers[key])
		if err != nil {
			faults = append(faults, faultInside(path, where, "answers."+key, err.Error()))
			continue
		}
		l.Answers[key] = v
	}
	if l.Answers == nil {
		l.Answers = steps.Given{}
	}
	return inOrder(faults)
}

func meant(key string, g *steps.Guide) string {
	var keys []string
	for _, k := range g.Keys() {
		if strings.Contains(k, key) || strings.Contains(key, k) || sameTail(k, key) {
			keys = append(keys, k)
		}
	}
	if near := nearest.Name(key, g.Keys()); len(keys) == 0 && near != "" {
		keys = []string{near}
	}
	if len(keys) == 0 {
		return "; see carrick guides " + g.Name
	}
	return "; did you mean " + strings.Join(keys, " or ") + "?"
}

func sameTail(a, b string) bool {
	return a[strings.LastIndex(a, ".")+1:] == b[strings.LastIndex(b, ".")+1:]
}

func checkSchema(path string, root *yaml.Node, plain map[string]any) error {
	schema, err := linkSchema()
	if err != nil {
		return err
	}
	doc, err := jsonShape(plain)
	if err != nil {
		return &FileError{Path: path, Problem: err.Error()}
	}
	err = schema.Validate(doc)
	invalid := (*jsonschema.ValidationError)(nil)
	if !errors.As(err, &invalid) {
		return err
	}
	var faults []error
	for _, leaf := range leaves(invalid) {
		where := leaf.InstanceLocation
		if extra, ok := leaf.ErrorKind.(*kind.AdditionalProperties); ok {
			for _, name := range extra.Properties {
				key := append(append([]string{}, where...), name)
				faults = append(faults, faultKey(path, root, key, "is not a key of a link file"))
			}
			continue
		}
		problem := leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		faults = append(faults, fault(path, at(root, where...), strings.Join(where, "."), problem))
	}
	return inOrder(faults)
}

// inOrder sorts faults by line and joins them.
func inOrder(faults []error) error {
	slices.SortStableFunc(faults, func(a, b error) int {
		x, y := (*FileError)(nil), (*FileError)(nil)
		if !errors.As(a, &x) || !errors.As(b, &y) {
			return 0
		}
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
	return errors.Join(faults...)
}

func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, c := range e.Causes {
		out = append(out, leaves(c)...)
	}
	return out
}

func linkSchema() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		return nil, fmt.Errorf("schema of link files: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("link.schema.json", doc); err != nil {
		return nil, fmt.Errorf("schema of link files: %w", err)
	}
	return c.Compile("link.schema.json")
}

func jsonShape(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("contains what JSON cannot represent: %w", err)
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(b))
}
