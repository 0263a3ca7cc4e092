package action

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SetYAML puts a key of the mapping that a text of YAML is where it stands, or at
// the end, and leaves the rest to the letter. value is a string, true or false;
// nil takes the key away. Whoever sets a key reads the text again: one that is
// written in a way that is not a key a line comes out as something else.
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

// PlainLines refuses a text whose lines YAML counts otherwise than carrick, which edits by line: it takes a carriage
// return alone, NEL, LS and PS for ends of lines (YAML 1.1, section 5.4).
func PlainLines(text string) error {
	if strings.ContainsAny(strings.ReplaceAll(text, "\r\n", "\n"), "\r\u0085\u2028\u2029") {
		return errors.New("it has ends of lines other than LF and CRLF: edit it manually")
	}
	return nil
}

// lastEntry is the entry of a key in the mapping that a document is: of two, the
// one that counts.
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

// entryEnd is the number of the first line after an entry: what is indented
// deeper than its key belongs to it, and empty lines between such.
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

// yamlLines is an entry as it is written; nothing for one that is to go.
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
