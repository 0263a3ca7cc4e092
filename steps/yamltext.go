package steps

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// maxYAMLLines is the maximum number of lines of a YAML answer. A text field has the same limit.
const maxYAMLLines = 9999

var yamlErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parseYAML validates a multi-line answer and normalizes it. The result has no trailing blanks and exactly one newline
// at the end. A literal block of a link file preserves that form. Errors begin with the line number, such as "line 3:
// …".
func parseYAML(s string) (string, error) {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		if at := strings.IndexFunc(l, func(r rune) bool {
			return r != '\t' && unicode.IsControl(r) || r == '\uFEFF' || r == unicode.ReplacementChar
		}); at >= 0 {
			return "", fmt.Errorf("line %d: contains a character that cannot be displayed", i+1)
		}
		lines[i] = strings.TrimRight(l, " \t")
	}
	text := strings.Join(lines, "\n")
	if len(lines) > maxYAMLLines {
		return "", fmt.Errorf("it has %d lines; the maximum is %d", len(lines), maxYAMLLines)
	}
	var doc any
	dec := yaml.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&doc); err != nil {
		return "", plainYAML(err)
	}
	if err := dec.Decode(&doc); err == nil {
		return "", errors.New("it contains more than one YAML document")
	}
	return strings.TrimRight(text, "\n") + "\n", nil
}

// plainYAML rewrites a parser's error so that it begins with the line number, such as "line 3: …".
func plainYAML(err error) error {
	if err.Error() == "EOF" {
		return errors.New("it contains only comments")
	}
	var many *yaml.TypeError
	if errors.As(err, &many) && len(many.Errors) > 0 {
		return errors.New(many.Errors[0]) // for example "line 3: mapping key "a" already defined at line 1"
	}
	m := yamlErrorLine.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	rest := strings.TrimPrefix(err.Error(), m[0])
	if m[1] == "" {
		return fmt.Errorf("not valid YAML: %s", rest)
	}
	return fmt.Errorf("line %s: not valid YAML: %s", m[1], rest)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
