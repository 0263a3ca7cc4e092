package plain

import (
	"fmt"
	"strings"
)

// Row is a name with its description. Both can contain Markdown.
type Row struct{ Name, Means string }

// mostName is the maximum width of the name column.
const mostName = 24

// tableText renders a table whose first row is the header. If the columns do not fit, it renders one block per row.
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

// table renders two columns. A name longer than mostName is on a separate line above its description.
func table(rows []Row) string {
	wide := 0
	for _, r := range rows {
		if n := Width(Inline(r.Name)); n <= mostName {
			wide = max(wide, n)
		}
	}
	return Aligned(rows, wide)
}

// Aligned renders rows in two columns. The name column is wide columns wide.
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

// pairs renders each row as a block of two lines. The column names are the labels.
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

// inColumns renders a table in columns. It reports whether every row fits on one line.
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

// blocks renders each row as a block: the first cell, and below it all other non-empty cells with their column names.
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
