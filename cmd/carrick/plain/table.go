package plain

import (
	"fmt"
	"strings"
)

// Row is a name and its meaning. Both may contain Markdown.
type Row struct{ Name, Means string }

// mostName is the maximum width of the column of names.
const mostName = 24

// tableText renders a table for a terminal. The first row is the header. It uses columns if they fit, else a block for
// each row.
func tableText(cells [][]string) string {
	if len(cells) == 0 {
		return ""
	}
	head, body := cells[0], cells[1:]
	if len(head) == 2 {
		var rows []Row
		long := 0
		for _, c := range body {
			rows = append(rows, Row{c[0], c[1]})
			if Width(Inline(c[0])) > mostName {
				long++
			}
		}
		if head[1] == "" || 2*long <= len(body) {
			return table(rows)
		}
		return pairs(head, rows)
	}
	if text, ok := inColumns(cells); ok {
		return text
	}
	return blocks(head, body)
}

// table renders names in one column and meanings in another. A name that is longer than
// mostName is above its meaning.
func table(rows []Row) string {
	wide := 0
	for _, r := range rows {
		if n := Width(Inline(r.Name)); n <= mostName {
			wide = max(wide, n)
		}
	}
	return Aligned(rows, wide)
}

// Aligned renders rows with names in a column of that width.
func Aligned(rows []Row, wide int) string {
	var b strings.Builder
	for _, r := range rows {
		name := Inline(r.Name)
		if Width(name) > wide {
			fmt.Fprintln(&b, Hanging(name, "  "))
			name = ""
		}
		hang := strings.Repeat(" ", wide+4)
		text := strings.TrimLeft(Hanging(Inline(r.Means), hang), " ")
		fmt.Fprintln(&b, strings.TrimRight("  "+name+strings.Repeat(" ", wide-Width(name))+"  "+text, " "))
	}
	return b.String()
}

// pairs renders rows of two long cells, each under the name of its column.
func pairs(head []string, rows []Row) string {
	wide := max(Width(Inline(head[0])), Width(Inline(head[1])))
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(Aligned([]Row{{head[0], r.Name}, {head[1], r.Means}}, wide))
	}
	return b.String()
}

// inColumns renders a table in columns, and reports whether each row fits on one line.
func inColumns(cells [][]string) (string, bool) {
	wide := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, cell := range row {
			wide[i] = max(wide[i], Width(Inline(cell)))
		}
	}
	total := 0
	for _, w := range wide {
		total += w + 2
	}
	if total > Columns {
		return "", false
	}
	var b strings.Builder
	for _, row := range cells {
		line := ""
		for i, cell := range row {
			text := Inline(cell)
			line += "  " + text + strings.Repeat(" ", wide[i]-Width(text))
		}
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	return b.String(), true
}

// blocks renders each row as a block: its first cell, and below it each non-empty cell with the name of its column.
func blocks(head []string, body [][]string) string {
	wide := 0
	for _, h := range head[1:] {
		wide = max(wide, Width(Inline(h)))
	}
	var b strings.Builder
	for i, cells := range body {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintln(&b, Hanging(Inline(cells[0]), "  "))
		var rows []Row
		for j, cell := range cells[1:] {
			if cell != "" {
				rows = append(rows, Row{"  " + head[j+1], cell})
			}
		}
		b.WriteString(Aligned(rows, min(wide, mostName)+2))
	}
	return b.String()
}
