package steps

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// maxYAMLLines is what an answer of kind YAML may have: a text field holds no
// more.
const maxYAMLLines = 9999

var yamlErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parseYAML checks a long answer and gives it the form in which it is kept: no
// blanks at the ends of lines, and one newline at its end. That is what stays as it is in a literal block of a link
// file. Errors name the line: "line 3: …".
func parseYAML(s string) (string, error) {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		if at := strings.IndexFunc(l, func(r rune) bool {
			return r != '\t' && unicode.IsControl(r) || r == '\uFEFF' || r == unicode.ReplacementChar
		}); at >= 0 {
			return "", fmt.Errorf("line %d: a character that can't be shown", i+1)
		}
		lines[i] = strings.TrimRight(l, " \t")
	}
	text := strings.Join(lines, "\n")
	if len(lines) > maxYAMLLines {
		return "", fmt.Errorf("it has %d lines; at most %d are taken", len(lines), maxYAMLLines)
	}
	var doc any
	dec := yaml.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&doc); err != nil {
		return "", plainYAML(err)
	}
	if err := dec.Decode(&doc); err == nil {
		return "", errors.New("it holds more than one YAML document")
	}
	return strings.TrimRight(text, "\n") + "\n", nil
}

// plainYAML is a parser's error with its line in front: "line 3: …".
func plainYAML(err error) error {
	if err.Error() == "EOF" {
		return errors.New("there is nothing in it but comments")
	}
	var many *yaml.TypeError
	if errors.As(err, &many) && len(many.Errors) > 0 {
		return errors.New(many.Errors[0]) // "line 3: mapping key "a" already defined at line 1"
	}
	m := yamlErrorLine.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	rest := strings.TrimPrefix(err.Error(), m[0])
	if m[1] == "" {
		return fmt.Errorf("this is not YAML: %s", rest)
	}
	return fmt.Errorf("line %s: this is not YAML: %s", m[1], rest)
}

// blank tells whether nothing was answered.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
