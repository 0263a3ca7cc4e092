package action

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SetYAML sets a top-level key of a YAML mapping. It replaces the existing entry or appends one, and leaves all other
// bytes unchanged. value is a string, true or false. If value is nil, SetYAML removes the key. Callers must parse the
// result, because it can be wrong if text does not have one key per line.
func SetYAML(text, key string, value any) (string, error) {
	if err := PlainLines(text); err != nil {
		return "", err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "", err
	}
	lines := strings.Split(text, "\n")
	k, v := lastEntry(&doc, key)
	if k == nil {
		at := len(lines)
		for at > 0 && strings.TrimSpace(lines[at-1]) == "" {
			at--
		}
		return strings.Join(slices.Insert(lines, at, yamlLines(key, value)...), "\n"), nil
	}
	end := entryEnd(lines, k, v)
	put := yamlLines(key, value)
	if len(put) == 1 && v.LineComment != "" {
		put[0] += " " + v.LineComment
	}
	return strings.Join(slices.Replace(lines, k.Line-1, end, put...), "\n"), nil
}

// PlainLines rejects text in which YAML and carrick disagree on line breaks. carrick edits by line. YAML also treats a
// lone carriage return, NEL, LS and PS as line breaks (YAML 1.1, section 5.4).
func PlainLines(text string) error {
	if strings.ContainsAny(strings.ReplaceAll(text, "\r\n", "\n"), "\r\u0085\u2028\u2029") {
		return errors.New("it has line endings other than LF and CRLF: edit it manually")
	}
	return nil
}

// lastEntry returns the last entry of a key in a document's mapping.
func lastEntry(doc *yaml.Node, name string) (key, value *yaml.Node) {
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil
	}
	m := doc.Content[0].Content
	for i := 0; i+1 < len(m); i += 2 {
		if m[i].Value == name {
			key, value = m[i], m[i+1]
		}
	}
	return key, value
}

// entryEnd returns the number of the first line after an entry. The entry includes all lines that are indented deeper
// than its key, and the empty lines between them.
func entryEnd(lines []string, key, value *yaml.Node) int {
	end := max(key.Line, value.Line)
	for i := key.Line; i < len(lines); i++ {
		switch depth := len(lines[i]) - len(strings.TrimLeft(lines[i], " ")); {
		case strings.TrimSpace(lines[i]) == "":
		case depth >= key.Column:
			end = i + 1
		default:
			return end
		}
	}
	return end
}

// yamlLines returns the lines of an entry. If value is nil, it returns no lines, which removes the entry.
func yamlLines(key string, value any) []string {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		if !strings.Contains(v, "\n") {
			return []string{key + ": " + strconv.Quote(v)}
		}
		out := []string{key + ": |"}
		for _, l := range strings.Split(strings.TrimRight(v, "\n"), "\n") {
			out = append(out, "  "+l)
		}
		return out
	default:
		return []string{fmt.Sprintf("%s: %v", key, v)}
	}
}
