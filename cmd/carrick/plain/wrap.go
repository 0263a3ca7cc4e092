// Package plain formats plain text for terminals of 80 columns: paragraphs, tables and the Markdown in carrick's
// READMEs.
package plain

import (
	"strings"
	"unicode/utf8"
)

// Columns is the maximum line width.
const Columns = 80

// Width returns the width of s in columns.
func Width(s string) int { return utf8.RuneCountInString(s) }

// Hanging wraps text at 80 columns and indents every line. A longer word gets its own line.
func Hanging(text, indent string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && Width(indent)+Width(line)+1+Width(word) > Columns {
			lines, line = append(lines, indent+line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, indent+line), "\n")
}

// Wrapped rewraps the paragraphs of text. It keeps lines that begin with a space.
func Wrapped(text string) string {
	var out, running []string
	flush := func() {
		if len(running) > 0 {
			out = append(out, Hanging(strings.Join(running, " "), ""))
		}
		running = nil
	}
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if line == "" || line[0] == ' ' {
			flush()
			out = append(out, line)
			continue
		}
		running = append(running, line)
	}
	flush()
	return strings.Join(out, "\n")
}

// OneLine replaces each run of white space with one space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
