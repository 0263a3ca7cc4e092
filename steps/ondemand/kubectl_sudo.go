package ondemand

import (
	"strings"
)

// securePath is what a sudoers file says of the PATH of commands that root has
// run for others: said tells whether it says anything, on whether it sets one.
// The last word counts, in a file as in the files after it.
func securePath(data []byte) (path string, said bool) {
	text := strings.ReplaceAll(string(data), "\\\n", " ")
	for line := range strings.SplitSeq(text, "\n") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Defaults")
		if !ok || rest == "" {
			continue
		}
		// A scope of other callers than root, or of commands and targets.
		if scope := rest[0]; scope != ' ' && scope != '\t' {
			rest, ok = strings.CutPrefix(rest, ":root")
			if !ok || rest == "" || rest[0] != ' ' && rest[0] != '\t' {
				continue
			}
		}
		for _, setting := range settings(rest) {
			name, value, is := strings.Cut(setting, "=")
			switch {
			case is && strings.TrimSpace(name) == "secure_path":
				path, said = strings.Trim(strings.TrimSpace(value), `"`), true
			case strings.TrimSpace(setting) == "!secure_path":
				path, said = "", true
			}
		}
	}
	return path, said
}

// settings are the parts of a Defaults line: commas part them, but not in quotes
// or behind a backslash, and a # ends the line.
func settings(line string) []string {
	var out []string
	var b strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
		case c == '"':
			quoted = !quoted
			b.WriteByte(c)
		case c == ',' && !quoted:
			out = append(out, b.String())
			b.Reset()
		case c == '#' && !quoted:
			return append(out, b.String())
		default:
			b.WriteByte(c)
		}
	}
	return append(out, b.String())
}
