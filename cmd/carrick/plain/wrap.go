// Package plain writes plain text for terminals of 80 columns: wrapped paragraphs, tables, and the Markdown of
// carrick's READMEs.
package plain

import (
	"strings"
	"unicode/utf8"
)

// Columns is how wide help and explanations are: a terminal has that many.
const Columns = 80

// Width returns how many columns a line takes.
func Width(s string) int { return utf8.RuneCountInString(s) }

// Hanging breaks a text into lines of at most 80 columns, each after indent. A
// word that is longer stands alone.
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

// Wrapped breaks the paragraphs of a text anew. A line that begins with a space
// is kept as it is.
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

// OneLine returns a text with each run of white space as one space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
