package main

import (
	"fmt"
	"strings"
)

// row is a name and what it means. Both may hold Markdown.
type row struct{ name, means string }

// mostName is how wide the column of names may be.
const mostName = 24

// tableText renders a table, the header first, for a terminal: in columns where they fit, else a block for each row.
func tableText(cells [][]string) string {
	if len(cells) == 0 {
		return ""
	}
	head, body := cells[0], cells[1:]
	if len(head) == 2 {
		var rows []row
		long := 0
		for _, c := range body {
			rows = append(rows, row{c[0], c[1]})
			if runes(inline(c[0])) > mostName {
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

// table renders names in one column, or above what they mean where one is long.
func table(rows []row) string {
	wide := 0
	for _, r := range rows {
		if n := runes(inline(r.name)); n <= mostName {
			wide = max(wide, n)
		}
	}
	return aligned(rows, wide)
}

// aligned renders rows with names in a column of that width.
func aligned(rows []row, wide int) string {
	var b strings.Builder
	for _, r := range rows {
		name := inline(r.name)
		if runes(name) > wide {
			fmt.Fprintln(&b, hanging(name, "  "))
			name = ""
		}
		hang := strings.Repeat(" ", wide+4)
		text := strings.TrimLeft(hanging(inline(r.means), hang), " ")
		fmt.Fprintln(&b, strings.TrimRight("  "+name+strings.Repeat(" ", wide-runes(name))+"  "+text, " "))
	}
	return b.String()
}

// pairs renders rows of two long cells, each under the name of its column.
func pairs(head []string, rows []row) string {
	wide := max(runes(inline(head[0])), runes(inline(head[1])))
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(aligned([]row{{head[0], r.name}, {head[1], r.means}}, wide))
	}
	return b.String()
}

// inColumns renders a table whose rows fit on a line each, and reports whether they do.
func inColumns(cells [][]string) (string, bool) {
	wide := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, cell := range row {
			wide[i] = max(wide[i], runes(inline(cell)))
		}
	}
	total := 0
	for _, w := range wide {
		total += w + 2
	}
	if total > screenColumns {
		return "", false
	}
	var b strings.Builder
	for _, row := range cells {
		line := ""
		for i, cell := range row {
			text := inline(cell)
			line += "  " + text + strings.Repeat(" ", wide[i]-runes(text))
		}
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	return b.String(), true
}

// blocks renders each row as its first cell and, below it, the others that are not empty, each with its column's name.
func blocks(head []string, body [][]string) string {
	wide := 0
	for _, h := range head[1:] {
		wide = max(wide, runes(inline(h)))
	}
	var b strings.Builder
	for i, cells := range body {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintln(&b, hanging(inline(cells[0]), "  "))
		var rows []row
		for j, cell := range cells[1:] {
			if cell != "" {
				rows = append(rows, row{"  " + head[j+1], cell})
			}
		}
		b.WriteString(aligned(rows, min(wide, mostName)+2))
	}
	return b.String()
}
