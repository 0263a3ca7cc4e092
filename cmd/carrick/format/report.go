package format

import (
	"fmt"
	"io"
	"strings"

	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
)

// Printer writes reports for users.
type Printer struct {
	Guides   []*steps.Guide
	ASCII    bool
	All      bool // also print the checks that an answer makes not applicable
	NotGreen bool // print only the checks that need attention
}

func (p Printer) glyph(s engine.State) string {
	if p.ASCII {
		return s.ASCII()
	}
	return s.Glyph()
}

// Line formats the verdict of one cell for check --watch.
func (p Printer) Line(g *steps.Guide, c steps.Cell, state engine.State, v steps.Result) string {
	return fmt.Sprintf(
		"%s %-7s %-8s %-28s %s", p.glyph(state), tableWord(state, v.Status), g.Sides[c.Side].Name, c.Check,
		plain.OneLine(v.Says()),
	)
}

// hides reports whether a row is left out of the table.
func (p Printer) hides(c engine.ReportCheck) bool {
	switch c.State {
	case engine.OK, engine.Later, engine.Skipped:
		return p.NotGreen
	case engine.Off:
		return p.NotGreen || !p.All
	}
	return false
}

// tableWord returns the word for a verdict in a table. This is the status as in the other formats, or the state if it
// is more precise.
func tableWord(state engine.State, status steps.Status) string {
	switch state {
	case engine.ToDo, engine.Later, engine.Off:
		return state.String()
	}
	return status.String()
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
	for _, c := range r.Checks {
		if p.hides(c) {
			continue
		}
		if c.Step != step {
			step = c.Step
			fmt.Fprintf(&b, "%s%s\n", map[bool]string{true: "", false: "\n"}[b.Len() == 0], g.Step(step).Title)
		}
		role := g.Sides[c.Side].Name
		word := tableWord(c.State, c.Status)
		fmt.Fprintf(&b, "  %s %-7s %-8s %s: %s\n", p.glyph(c.State), word, role, c.Title, plain.OneLine(c.Found))
		if c.Fix != "" && c.Status != steps.Pass && c.Status != steps.Skip {
			fmt.Fprintf(&b, "      fix: %s\n", strings.ReplaceAll(strings.TrimSpace(c.Fix), "\n", "\n           "))
			fmt.Fprintf(&b, "      why: carrick explain %s/%s\n", r.Guide, c.Check)
		}
	}
	p.Causes(&b, r)
	fmt.Fprintf(&b, "\n%s\n", p.Dots(r.Counts().String()))
	if off := r.Counts().Of(engine.Off); off > 0 && !p.All && !p.NotGreen {
		fmt.Fprintf(&b, "%d more not applicable with the current answers; --all lists them\n", off)
	}
	_, err = fmt.Fprint(w, b.String())
	return err
}
