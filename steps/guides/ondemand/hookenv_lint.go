package ondemand

import (
	"regexp"
	"strconv"
	"strings"

	"carrick/cluster/nearest"
)

var bashName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// bareExport matches a command that exports names without setting them.
var bareExport = regexp.MustCompile(`^export([ \t]+[A-Za-z_][A-Za-z0-9_]*)+[ \t]*$`)

// lint returns the faults of hook.env. A fault is a line that one of the two readers cannot read, or that the readers
// interpret differently. Faults never contain a value, because a value can be secret.
func (f envFile) lint() []fileFault {
	var out []fileFault
	seen := map[string]int{}
	for i, l := range f.lines {
		line, offset := f.place(i)
		if says, column := l.fault(); says != "" {
			out = append(out, fileFault{line: line, column: offset + column, says: says})
			continue
		}
		if l.key == "" {
			continue
		}
		if envKeyOf(l.key) == nil {
			if near := nearest.Name(l.key, envNames()); near != "" {
				says := "upstream's hooks do not read " + l.key + ": did you mean " + near + "?"
				out = append(out, fileFault{line: line, column: offset + 1, about: naming, says: says})
			}
		}
		if first := seen[l.key]; first != 0 {
			says := l.key + " is already set in line " + strconv.Itoa(first) + ": bash uses the last value"
			out = append(out, fileFault{line: line, column: offset + 1, says: says})
		}
		seen[l.key] = line
	}
	return out
}

// fault returns the fault of l and its column, or "" if l has no fault.
func (l envLine) fault() (says string, column int) {
	text := l.text
	trimmed := strings.TrimLeft(text, " \t")
	indent := len(text) - len(trimmed)
	switch {
	case strings.HasSuffix(text, "\r"):
		return windowsLine, len(text)
	case text == "" || strings.HasPrefix(text, "#"):
		return "", 0
	case trimmed == "":
		return "", 0 // only whitespace, which both readers ignore
	case strings.HasPrefix(trimmed, "#"):
		return "the comment is indented: upstream's hook tries to export it and fails. Put the # in column 1", indent + 1
	case l.unexported():
		return l.key + " is not the first setting on its line, so upstream's hook does not export it and envsubst " +
			"omits the value", indent + 1
	case l.key == "" && bareExport.MatchString(trimmed):
		return "", 0
	case l.key == "":
		return notASetting(trimmed), indent + 1
	case l.odd != "":
		return l.key + ": " + l.odd, strings.Index(text, "=") + 2
	}
	return "", 0
}

const windowsLine = "the line has a Windows line ending (CR LF): the CR becomes part of the value, so true becomes " +
	"another value"

// ofWindows reports whether the fault is a Windows line ending.
func (f fileFault) ofWindows() bool { return f.says == windowsLine }

// notASetting returns the fault of text, a line that is neither a setting nor a comment.
func notASetting(text string) string {
	name, _, has := strings.Cut(text, "=")
	switch bare := strings.TrimSpace(name); {
	case has && bare != name && bashName.MatchString(bare):
		return "there is a space before the =, so bash runs " + bare + " as a command"
	case has:
		return "the text before the = is not a valid name: upstream's hook cannot export it and fails"
	}
	return "the line is not a setting (KEY=value), a comment or empty, so upstream's hook fails at this line"
}

// unedited reports whether each key is unset or has the example value from upstream's package.
func (f envFile) unedited() bool {
	for _, k := range envKeys {
		if v, err := f.get(k.name); err != nil || (v != "" && v != k.ships) {
			return false
		}
	}
	return true
}
