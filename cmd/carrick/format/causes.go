package format

import (
	"fmt"
	"io"
	"strings"

	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
)

// mostCauses is the maximum number of causes in one report.
const mostCauses = 5

// Causes prints what to fix first and what to do next. These are the checks that fail but are not blocked, in
// dependency order, each with the checks that it blocks.
func (p Printer) Causes(w io.Writer, r engine.Report) {
	p.causes(w, r, "First causes", func(c engine.ReportCheck) bool { return !c.ToDo })
	p.causes(w, r, "Next", func(c engine.ReportCheck) bool { return c.ToDo })
}

func (p Printer) causes(w io.Writer, r engine.Report, title string, of func(engine.ReportCheck) bool) {
	g, err := steps.FindGuide(p.Guides, r.Guide)
	if err != nil {
		return
	}
	byID := map[string]engine.ReportCheck{}
	for _, c := range r.Checks {
		if of(c) {
			byID[c.ID] = c
		}
	}
	n, left, last := 0, 0, ""
	for _, id := range r.Causes {
		c, shown := byID[id]
		switch {
		case !shown:
			continue
		case n == mostCauses:
			left++
			continue
		case n == 0:
			fmt.Fprintf(w, "\n%s\n", title)
		}
		n++
		more := ""
		if c.Causes > 0 {
			more = " (causes " + others(c.Causes) + ")"
		}
		fmt.Fprintf(
			w, "  %s %-8s %s%s: %s\n", p.glyph(c.State), g.Sides[c.Side].Name, c.Title, more, plain.OneLine(c.Found),
		)
		if c.Fix != "" && c.Fix == last {
			fmt.Fprintln(w, "      fix: same as above")
		} else if c.Fix != "" {
			first, _, more := strings.Cut(strings.TrimSpace(c.Fix), "\n")
			fmt.Fprintf(w, "      fix: %s%s\n", first, map[bool]string{true: " …"}[more])
		}
		last = c.Fix
	}
	if left > 0 {
		fmt.Fprintf(w, "  and %d more\n", left)
	}
}

func others(n int) string {
	if n == 1 {
		return "1 other"
	}
	return fmt.Sprintf("%d others", n)
}

// Dots replaces separator dots with commas for ASCII output.
func (p Printer) Dots(s string) string {
	if p.ASCII {
		return strings.ReplaceAll(s, " · ", ", ")
	}
	return s
}
