package ondemand

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/steps/action"
)

// portalSetting is a setting of ood_portal.yml that carrick writes, either at the top level or in a mapping.
type portalSetting struct {
	path  []string // one or two keys
	value string
}

func (s portalSetting) name() string { return strings.Join(s.path, ".") }

// portalEdit edits the text of ood_portal.yml line by line. Most of the file is comments, and no YAML library preserves
// them exactly. The result is parsed again to verify that only the settings have changed.
type portalEdit struct{ lines []string }

// withPortalSettings applies settings to a text. Settings that already have the required value are unchanged.
func withPortalSettings(text string, settings []portalSetting) (string, error) {
	was, err := portalValues(text)
	if err != nil {
		return "", err
	}
	for _, s := range settings {
		if portalSays(was, s) {
			continue
		}
		if err := action.PlainLines(text); err != nil {
			return "", err
		}
		e := portalEdit{lines: strings.Split(text, "\n")}
		root, err := portalRoot(text)
		if err != nil {
			return "", err
		}
		if len(s.path) == 1 {
			e.top(root, s.path[0], s.value)
		} else {
			e.nested(root, s.path[0], s.path[1], s.value)
		}
		text = strings.Join(e.lines, "\n")
		now, err := portalValues(text)
		want := with(was, s)
		if err != nil || !reflect.DeepEqual(now, want) {
			return "", fmt.Errorf(
				"setting %s in %s would change other settings as well; set it manually: %s", s.name(), portalFile,
				byHandPortal(s),
			)
		}
		was = now
	}
	return text, nil
}

func byHandPortal(s portalSetting) string {
	if len(s.path) == 1 {
		return fmt.Sprintf("%s: %q", s.path[0], s.value)
	}
	return fmt.Sprintf("under %s: %s: %q", s.path[0], s.path[1], s.value)
}

// portalValues parses the text.
func portalValues(text string) (map[string]any, error) {
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("%s: %s", portalFile, syntaxFault(err))
	}
	if out == nil {
		out = map[string]any{}
	}
	return out, nil
}

func portalRoot(text string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	return doc.Content[0], nil
}

// portalSays reports whether the values already contain the setting. On and true are equal.
func portalSays(values map[string]any, s portalSetting) bool {
	v, ok := values[s.path[0]]
	if len(s.path) == 2 {
		m, _ := v.(map[string]any)
		v, ok = m[s.path[1]]
	}
	return ok && (v == s.value || s.value == "On" && switchedOn(v))
}

// switchedOn reports whether Apache reads a value as on. Upstream's generator writes Ruby's true as true.
func switchedOn(v any) bool {
	return slices.Contains([]string{"on", "true", "yes", "1"}, strings.ToLower(fmt.Sprint(v)))
}

// with returns a copy of values with the setting applied.
func with(values map[string]any, s portalSetting) map[string]any {
	out := map[string]any{}
	for k, v := range values {
		out[k] = v
	}
	if len(s.path) == 1 {
		out[s.path[0]] = s.value
		return out
	}
	inner := map[string]any{}
	if m, ok := out[s.path[0]].(map[string]any); ok {
		for k, v := range m {
			inner[k] = v
		}
	}
	inner[s.path[1]] = s.value
	out[s.path[0]] = inner
	return out
}

// top sets a top-level key.
func (e *portalEdit) top(root *yaml.Node, name, value string) {
	line := name + ": " + oneLine(value)
	if key, old := entry(root, name); key != nil {
		e.replace(key, old, line)
		return
	}
	e.add(name, line)
}

// nested sets a key of a mapping.
func (e *portalEdit) nested(root *yaml.Node, parent, name, value string) {
	line := name + ": " + oneLine(value)
	key, m := entry(root, parent)
	switch {
	case key == nil:
		e.add(parent, parent+":", "  "+line)
	case m.Tag == "!!null" || (m.Kind == yaml.MappingNode && len(m.Content) == 0):
		e.replace(key, m, parent+":")
		e.insert(key.Line, "  "+line)
	case m.Kind != yaml.MappingNode:
	case m.Style&yaml.FlowStyle != 0:
		at := m.Content[0]
		if old, _ := entry(m, name); old == nil && at.Line > 0 {
			l := e.lines[at.Line-1]
			e.lines[at.Line-1] = l[:at.Column-1] + line + ", " + l[at.Column-1:]
		}
	default:
		if old, v := entry(m, name); old != nil {
			e.replace(old, v, line)
			return
		}
		e.insert(key.Line, strings.Repeat(" ", m.Content[0].Column-1)+line)
	}
}

// replace replaces a key and its value on the same line. It keeps the text before them and the comment after them.
func (e *portalEdit) replace(key, value *yaml.Node, line string) {
	if value.Tag != "!!null" && value.Line != key.Line {
		return // the caller's comparison then returns the error
	}
	old := e.lines[key.Line-1]
	line = old[:key.Column-1] + line
	if c := value.LineComment; c != "" && strings.HasSuffix(strings.TrimSpace(old), c) {
		line += " " + c
	} else if at := strings.Index(old, " #"); value.Tag == "!!null" && at >= 0 {
		line += old[at:]
	}
	e.lines[key.Line-1] = line
}

// insert inserts lines after the line with that number.
func (e *portalEdit) insert(after int, lines ...string) {
	e.lines = slices.Insert(e.lines, after, lines...)
}

// add adds lines after a commented-out key at the start of a line, or else at the end.
func (e *portalEdit) add(name string, lines ...string) {
	for i, l := range e.lines {
		if strings.HasPrefix(l, "#"+name+":") || strings.HasPrefix(l, "# "+name+":") {
			e.insert(i+1, lines...)
			return
		}
	}
	at := len(e.lines)
	if at > 0 && e.lines[at-1] == "" {
		at--
	}
	e.lines = slices.Insert(e.lines, at, lines...)
	if e.lines[len(e.lines)-1] != "" {
		e.lines = append(e.lines, "")
	}
}

// oneLine returns a string as a quoted YAML scalar.
func oneLine(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
