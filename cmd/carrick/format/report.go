package format

import (
	"fmt"
	"io"
	"strings"

	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
)

// Every glyph is one column wide in all locales. The status is always printed as a word, too.
var glyphs = map[steps.Status]string{
	steps.Pass: "✓", steps.Fail: "✗", steps.Warn: "!", steps.Unknown: "?", steps.Skip: "-", steps.Waiting: "◌",
	steps.Pending: "◌",
}

var asciiGlyphs = map[steps.Status]string{
	steps.Pass: "+", steps.Fail: "x", steps.Warn: "!", steps.Unknown: "?", steps.Skip: "-", steps.Waiting: ".",
	steps.Pending: ".",
}

// Printer writes reports for users.
type Printer struct {
	Guides []*steps.Guide
	ASCII  bool
}

func (p Printer) glyph(s steps.Status) string {
	if p.ASCII {
		return asciiGlyphs[s]
	}
	return glyphs[s]
}

// Line formats the verdict of one cell for check --watch.
func (p Printer) Line(g *steps.Guide, c steps.Cell, v steps.Result) string {
	return fmt.Sprintf(
		"%s %-7s %-8s %-28s %s", p.glyph(v.Status), v.Status, g.Sides[c.Side].Name, c.Check, plain.OneLine(v.Says()),
	)
}

// Report writes r. format is table, json, yaml or junit.
func (p Printer) Report(w io.Writer, r engine.Report, format string) error {
	switch format {
	case "json", "yaml":
		return Document(w, format, r)
	case "junit":
		return printJUnit(w, r)
	}
	return p.table(w, r)
}

// table writes one line per cell and the fix below it.
func (p Printer) table(w io.Writer, r engine.Report) error {
	var b strings.Builder
	g, err := steps.FindGuide(p.Guides, r.Guide)
	if err != nil {
		return err
	}
	step := ""
	var n engine.Counts
	for _, c := range r.Checks {
		n[c.Status]++
		if c.Step != step {
			step = c.Step
			fmt.Fprintf(&b, "%s%s\n", map[bool]string{true: "", false: "\n"}[b.Len() == 0], g.Step(step).Title)
		}
		role := g.Sides[c.Side].Name
		fmt.Fprintf(&b, "  %s %-7s %-8s %s: %s\n", p.glyph(c.Status), c.Status, role, c.Title, plain.OneLine(c.Found))
		if c.Fix != "" && c.Status != steps.Pass && c.Status != steps.Skip {
			fmt.Fprintf(&b, "      fix: %s\n", strings.ReplaceAll(strings.TrimSpace(c.Fix), "\n", "\n           "))
			fmt.Fprintf(&b, "      why: carrick explain %s/%s\n", r.Guide, c.Check)
		}
	}
	if n.Of(steps.Fail)+n.Of(steps.Unknown) > 0 {
		p.Causes(&b, r)
	}
	fmt.Fprintf(&b, "\n%s\n", p.Dots(n.String()))
	_, err = fmt.Fprint(w, b.String())
	return err
}
