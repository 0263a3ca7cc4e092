package plain

import (
	"regexp"
	"strings"
)

// Patterns for the Markdown in this repository's READMEs.

var (
	mdHeading = regexp.MustCompile(`^(#+) (.*)$`)
	mdItem    = regexp.MustCompile(`^( *)([-*]|\d+\.) +`)
	mdLink    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	mdStrong  = regexp.MustCompile(`\*\*?([^*\s][^*]*)\*\*?`)
	mdCode    = regexp.MustCompile("`[^`]*`")
	mdRule    = regexp.MustCompile(`^\|[-:| ]*-[-:| ]*\|$`)
)

// Fence starts and ends a code block.
const Fence = "```"

// Section returns the text below the heading title, up to the next heading of the same or a higher level. It returns ""
// if the heading does not exist.
func Section(text, title string) string {
	level, inFence := 0, false
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), Fence) {
			inFence = !inFence
		}
		if m := mdHeading.FindStringSubmatch(line); m != nil && !inFence {
			switch {
			case level > 0 && len(m[1]) <= level:
				return strings.Join(out, "\n")
			case level == 0 && m[2] == title:
				level = len(m[1])
				continue
			}
		}
		if level > 0 {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

type textWriter struct {
	out       []string
	paragraph []string
	indent    string // indentation of the current list item
	bullet    string // bullet or number, until the item's first line is written
}

// Text renders Markdown for a terminal. It indents code blocks without wrapping them, and wraps all other text at 80
// columns.
func Text(markdown string) string {
	w := &textWriter{}
	lines := strings.Split(markdown, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		trimmed := strings.TrimSpace(line)
		item := mdItem.FindString(line)
		if line != "" && line[0] != ' ' && item == "" && len(w.paragraph) == 0 {
			w.indent = "" // end of the list
		}
		switch {
		case trimmed == "":
			w.flush()
			w.blank()
		case strings.HasPrefix(trimmed, Fence):
			w.flush()
			inner := len(line) - len(strings.TrimLeft(line, " "))
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != Fence; i++ {
				w.out = append(w.out, strings.TrimRight(w.indent+"  "+lines[i][min(inner, len(lines[i])):], " "))
			}
		case line[0] == '#':
			w.flush()
			w.out = append(w.out, strings.ToUpper(Inline(strings.TrimLeft(line, "# "))))
		case line[0] == '|':
			w.flush()
			from := i
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|") {
				i++
			}
			w.out = append(w.out, strings.Split(strings.TrimRight(tableText(tableCells(lines[from:i+1])), "\n"), "\n")...)
		case item != "":
			w.flush()
			w.bullet, w.indent = item, strings.Repeat(" ", Width(item))
			w.paragraph = []string{line[len(item):]}
		default:
			w.paragraph = append(w.paragraph, trimmed)
		}
	}
	w.flush()
	return strings.Trim(strings.Join(w.out, "\n"), "\n")
}

func (w *textWriter) flush() {
	if len(w.paragraph) == 0 {
		return
	}
	text := Hanging(Inline(strings.Join(w.paragraph, " ")), w.indent)
	if w.bullet != "" {
		text = w.bullet + text[len(w.bullet):]
	}
	w.out = append(w.out, strings.Split(text, "\n")...)
	w.paragraph, w.bullet = nil, ""
}

// blank writes an empty line unless the previous line is empty.
func (w *textWriter) blank() {
	if n := len(w.out); n > 0 && w.out[n-1] != "" {
		w.out = append(w.out, "")
	}
}

// Inline removes the markup of links, emphasis and inline code.
func Inline(text string) string {
	text = mdLink.ReplaceAllString(text, "$1")
	var b strings.Builder
	at := 0
	for _, code := range mdCode.FindAllStringIndex(text, -1) {
		b.WriteString(mdStrong.ReplaceAllString(text[at:code[0]], "$1"))
		b.WriteString(text[code[0]+1 : code[1]-1])
		at = code[1]
	}
	b.WriteString(mdStrong.ReplaceAllString(text[at:], "$1"))
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), "**", ""), `\|`, "|")
}

// tableCells returns the cells of a Markdown table by row. The first row is the header.
func tableCells(lines []string) [][]string {
	const bar = "\x00"
	var out [][]string
	for _, line := range lines {
		if mdRule.MatchString(line) {
			continue
		}
		line = strings.Trim(strings.ReplaceAll(line, `\|`, bar), "|")
		var cells []string
		for _, cell := range strings.Split(line, "|") {
			cells = append(cells, strings.ReplaceAll(strings.TrimSpace(cell), bar, `\|`))
		}
		if len(out) > 0 { // pad to the number of columns in the header
			cells = append(cells, make([]string, len(out[0]))...)[:len(out[0])]
		}
		out = append(out, cells)
	}
	return out
}

// TableRows returns the rows of the first two-column table in markdown, without the header.
func TableRows(markdown string) []Row {
	var lines []string
	for _, line := range strings.Split(markdown, "\n") {
		if strings.HasPrefix(line, "|") {
			lines = append(lines, line)
		} else if len(lines) > 0 {
			break
		}
	}
	var rows []Row
	for i, cells := range tableCells(lines) {
		if i > 0 && len(cells) == 2 {
			rows = append(rows, Row{cells[0], cells[1]})
		}
	}
	return rows
}
