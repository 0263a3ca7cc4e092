package webnode

import (
	"fmt"
	"regexp"
	"strings"
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// source reads hook.env as the package's hook does in bash: it is sourced, and
// then each word before the first = of a line that has no # in its first column
// is exported. The error is what bash ends with.
func source(text string) (map[string]string, error) {
	env := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, assigned := strings.Cut(line, "=")
		for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '\t' }) {
			if !identifier.MatchString(word) {
				return nil, fmt.Errorf("export: `%s': not a valid identifier", word)
			}
		}
		if !assigned {
			continue
		}
		value, rest := unquoted(value)
		if rest != "" && !strings.HasPrefix(rest, "#") {
			return nil, fmt.Errorf("%s: command not found", strings.Fields(rest)[0])
		}
		env[name] = value
	}
	if env["USE_POD_SECURITY_POLICY"] == "true" {
		return nil, fmt.Errorf("UID: readonly variable")
	}
	return env, nil
}

// unquoted is the first word of what stands behind =, as bash takes it, and what
// comes after it. A carriage return is a letter like any other.
func unquoted(text string) (word, rest string) {
	var out strings.Builder
	quote := rune(0)
	for i, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && (r == ' ' || r == '\t'):
			return out.String(), strings.TrimLeft(text[i:], " \t")
		default:
			out.WriteRune(r)
		}
	}
	return out.String(), ""
}
