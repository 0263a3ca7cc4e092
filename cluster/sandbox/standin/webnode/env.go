package webnode

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	assignment = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=`)
)

// source evaluates hook.env as k8s-bootstrap-ondemand.sh does in bash under set -e (OSC/ondemand e5bbaf1d7
// hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh). The script sources the file first. Then it exports the word before
// the first = in each line that does not begin with #. The error is the message that bash exits with.
func source(text string) (map[string]string, error) {
	env := map[string]string{}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if err := assign(env, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	for _, line := range lines {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, word := range strings.FieldsFunc(name, blank) {
			if !identifier.MatchString(word) {
				return nil, fmt.Errorf("export: `%s': not a valid identifier", word)
			}
		}
	}
	if env["USE_POD_SECURITY_POLICY"] == "true" { // the script assigns to UID, which is read-only in bash
		return nil, fmt.Errorf("UID: readonly variable")
	}
	return env, nil
}

// assign evaluates a line of assignments like bash. If the line contains any other word, it returns bash's error for an
// unknown command.
func assign(env map[string]string, line string) error {
	rest := strings.TrimLeftFunc(line, blank)
	exports := false
	for rest != "" && !strings.HasPrefix(rest, "#") {
		name := ""
		if m := assignment.FindStringSubmatch(rest); m != nil {
			name, rest = m[1], rest[len(m[0]):]
		}
		word, more, err := unquoted(rest)
		switch rest = more; {
		case err != nil:
			return err
		case name != "":
			env[name] = word
		case word == "export" && !exports:
			exports = true
		case exports && identifier.MatchString(word): // already assigned, or without a value
		case exports:
			return fmt.Errorf("export: `%s': not a valid identifier", word)
		default:
			return fmt.Errorf("%s: command not found", printable(word))
		}
	}
	return nil
}

func blank(r rune) bool { return r == ' ' || r == '\t' }

// printable returns a word as bash prints it: quoted if it contains a carriage return.
func printable(word string) string {
	if !strings.Contains(word, "\r") {
		return word
	}
	return "$'" + strings.ReplaceAll(word, "\r", `\r`) + "'"
}

// unquoted returns the first word of text as bash parses it, and the rest after the blanks. A carriage return is an
// ordinary character, and nothing is expanded.
func unquoted(text string) (word, rest string, err error) {
	var out strings.Builder
	quote, escaped := rune(0), false
	for i, r := range text {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) {
				out.WriteByte('\\')
			}
			out.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && blank(r):
			return out.String(), strings.TrimLeftFunc(text[i:], blank), nil
		default:
			out.WriteRune(r)
		}
	}
	if quote != 0 {
		return "", "", fmt.Errorf("unexpected EOF while looking for matching `%c'", quote)
	}
	return out.String(), "", nil
}
