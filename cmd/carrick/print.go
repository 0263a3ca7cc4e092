package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"carrick/steps"
	"carrick/steps/engine"
)

// glyphs are of width 1 in every locale. Status is glyph and word, always.
var glyphs = map[steps.Status]string{
	steps.Pass: "✓", steps.Fail: "✗", steps.Warn: "!", steps.Unknown: "?", steps.Skip: "-", steps.Waiting: "◌", steps.Pending: "◌",
}

var asciiGlyphs = map[steps.Status]string{
	steps.Pass: "+", steps.Fail: "x", steps.Warn: "!", steps.Unknown: "?", steps.Skip: "-", steps.Waiting: ".", steps.Pending: ".",
}

func (a *app) glyph(s steps.Status) string {
	if a.ascii {
		return asciiGlyphs[s]
	}
	return glyphs[s]
}

func (a *app) line(g *steps.Guide, c steps.Cell, v steps.Result) string {
	return fmt.Sprintf("%s %-7s %-8s %-28s %s", a.glyph(v.Status), v.Status, g.Sides[c.Side].Name, c.Check, oneLine(v.Says()))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (a *app) printReport(r engine.Report, format string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	case "yaml":
		b, err := yaml.Marshal(r)
		if err != nil {
			return err
		}
		_, err = a.out.Write(b)
		return err
	case "junit":
		return printJUnit(a.out, r)
	}
	return a.printTable(r)
}

// data is standard output. It keeps the first error: data that is lost is no
// success.
type data struct {
	io.Writer
	err error
}

func (d *data) Write(p []byte) (int, error) {
	n, err := d.Writer.Write(p)
	if d.err == nil {
		d.err = err
	}
	return n, err
}

// judge is the error of a command that wrote to d.
func (d *data) judge(err error) error {
	if v := verdict(0); d.err != nil && (err == nil || errors.As(err, &v)) {
		return fmt.Errorf("write the output: %w", d.err)
	}
	return err
}

// printTable is for people: a line a cell, and what to do under those that
// need it.
func (a *app) printTable(r engine.Report) error {
	var b strings.Builder
	g, err := steps.FindGuide(a.guides, r.Guide)
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
		fmt.Fprintf(&b, "  %s %-7s %-8s %s: %s\n", a.glyph(c.Status), c.Status, role, c.Title, oneLine(c.Found))
		if c.Fix != "" && c.Status != steps.Pass && c.Status != steps.Skip {
			fmt.Fprintf(&b, "      fix: %s\n", strings.ReplaceAll(strings.TrimSpace(c.Fix), "\n", "\n           "))
			fmt.Fprintf(&b, "      why: carrick explain %s/%s\n", r.Guide, c.Check)
		}
	}
	if n.Of(steps.Fail)+n.Of(steps.Unknown) > 0 {
		a.printCauses(&b, r)
	}
	fmt.Fprintf(&b, "\n%s\n", a.dots(n.String()))
	_, err = fmt.Fprint(a.out, b.String())
	return err
}
