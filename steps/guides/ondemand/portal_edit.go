package ondemand

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/steps/action"
)

type portalSetting struct {
	path  []string // one key, or two for a setting in a mapping
	value string
}

func (s portalSetting) name() string { return strings.Join(s.path, ".") }

// portalEdit edits ood_portal.yml line by line, because no YAML library preserves its many comments exactly.
// withPortalSettings then parses the result and verifies that no other setting has changed.
type portalEdit struct{ lines []string }

// withPortalSettings applies settings to text. It does not change settings that already have the required value.
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

// portalValues parses ood_portal.yml. For an empty file, it returns an empty map.
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

// portalSays reports whether values contains s. If s.value is On, it also accepts on, true, yes and 1.
func portalSays(values map[string]any, s portalSetting) bool {
	v, ok := values[s.path[0]]
	if len(s.path) == 2 {
		m, _ := v.(map[string]any)
		v, ok = m[s.path[1]]
	}
	return ok && (v == s.value || s.value == "On" && switchedOn(v))
}

// switchedOn reports whether Apache treats v as On. Upstream's generator writes the Ruby value true as "true".
func switchedOn(v any) bool {
	return slices.Contains([]string{"on", "true", "yes", "1"}, strings.ToLower(fmt.Sprint(v)))
}

// with returns a copy of values with s applied.
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

func (e *portalEdit) top(root *yaml.Node, name, value string) {
	line := name + ": " + oneLine(value)
	if key, old := entry(root, name); key != nil {
		e.replace(key, old, line)
		return
	}
	e.add(name, line)
}

// nested sets a key in the mapping parent. If parent does not exist, nested adds it.
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

// replace replaces key and value with line. It keeps the indentation and the comment at the end of the line. If value
// is not on the same line as key, replace does nothing.
func (e *portalEdit) replace(key, value *yaml.Node, line string) {
	if value.Tag != "!!null" && value.Line != key.Line {
		return // withPortalSettings then notices the missing change and returns an error
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

// insert adds lines below line number after. Line numbers start at 1.
func (e *portalEdit) insert(after int, lines ...string) {
	e.lines = slices.Insert(e.lines, after, lines...)
}

// add inserts lines below a commented-out setting of the key, or at the end of the file.
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

// oneLine returns s as a quoted YAML scalar.
func oneLine(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
