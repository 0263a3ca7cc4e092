package main

import (
	"strings"
	"unicode/utf8"
)

// screenColumns is how wide help and explanations are: a terminal has that many.
const screenColumns = 80

func runes(s string) int { return utf8.RuneCountInString(s) }

// hanging breaks a text into lines of at most 80 columns, each after indent. A
// word that is longer stands alone.
func hanging(text, indent string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && runes(indent)+runes(line)+1+runes(word) > screenColumns {
			lines, line = append(lines, indent+line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, indent+line), "\n")
}

// wrapped breaks the paragraphs of a text anew. A line that begins with a space
// is kept as it is.
func wrapped(text string) string {
	var out, running []string
	flush := func() {
		if len(running) > 0 {
			out = append(out, hanging(strings.Join(running, " "), ""))
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
