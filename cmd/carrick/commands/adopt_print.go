package commands

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
)

// tellAdopted prints what was found and how to continue. If standard output contains the link file, it prints all of
// that to standard error.
func (a *app) tellAdopted(ctx context.Context, s *engine.Session, found []engine.Adopted, printed bool) error {
	out := a.out
	if printed {
		out = a.err
	}
	b, looks := s.Look(ctx, s.Guide().Cells())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	holds, all := s.Standing(b)
	printAdopted(a.err, found, holds > 0)
	link := s.Link()
	if printed {
		fmt.Fprintln(a.err)
	} else {
		fmt.Fprintf(a.err, "\n%s is written\n", link.Path)
	}
	if holds == 0 {
		fmt.Fprintf(
			out, "No set-up was found: nothing that the guide %s creates exists on these two clusters.\n", s.Guide().Name,
		)
		if !printed {
			fmt.Fprintf(out, "Continue as with a new link:\n  %s %s\n", a.name, steps.Quoted(link.Path))
		}
		return nil
	}
	fmt.Fprintf(
		out, "A set-up was found: %d of the %d checks of the guide %s pass.\n", holds, all, s.Guide().Name,
	)
	path, next := steps.Quoted(link.Path), "Continue with"
	if printed {
		path, next = "LINK", "Save the printed link file as LINK, and continue with"
	}
	report := s.NewReport(b, looks, nil, time.Now())
	a.printer().Causes(out, report)
	fmt.Fprintf(out, "\n%s\n\n%s:\n", a.printer().Dots(b.Count("").String()), next)
	for _, next := range [][2]string{
		{"", "the wizard: opens on the first cause; t lists everything that is wrong"},
		{"check ", "every check, with its fix"},
		{"diff ", "the changes that carrick would make; apply asks before it makes them"},
	} {
		fmt.Fprintf(out, "  %-*s   %s\n", len(a.name)+7+len(path), a.name+" "+next[0]+path, next[1])
	}
	return nil
}

func printAdopted(w io.Writer, found []engine.Adopted, stands bool) {
	list := func(head string, pick func(engine.Adopted) bool, line func(engine.Adopted) string) {
		for _, f := range found {
			if pick(f) {
				if head != "" {
					fmt.Fprintf(w, "\n%s\n", head)
					head = ""
				}
				fmt.Fprintf(w, "  %s\n", line(f))
			}
		}
	}
	value := func(f engine.Adopted) string {
		shown := plain.OneLine(f.Question.Show(f.Value))
		if f.Question.Kind == steps.YAML {
			shown = fmt.Sprintf("(%d lines)", strings.Count(fmt.Sprint(f.Value), "\n"))
		} else if shown == "" {
			shown = "(empty)"
		}
		from := plain.OneLine(f.From)
		if f.How == engine.ByFinding && !f.Written {
			from += "; it is the default"
		}
		return fmt.Sprintf("%-26s %s    # %s", f.Question.Key, shown, from)
	}
	list("Found:", func(f engine.Adopted) bool { return f.How == engine.ByFinding || f.How == engine.ByUser }, value)
	list("Defaults, or read from the clusters each time (not written to the file):",
		func(f engine.Adopted) bool { return f.How == engine.ByDefault && !f.ByHand() }, value)
	if !stands {
		return
	}
	printManual(w, found)
}

// printManual prints the answers that could not be discovered, grouped by reason.
func printManual(w io.Writer, found []engine.Adopted) {
	var reasons []string
	of := map[string][]engine.Adopted{}
	for _, f := range found {
		if !f.ByHand() {
			continue
		}
		why := f.Why
		if why == "" {
			why = "no object on the clusters contains the value"
		}
		if of[why] == nil {
			reasons = append(reasons, why)
		}
		of[why] = append(of[why], f)
	}
	if len(reasons) > 0 {
		fmt.Fprint(w, "\nNot discovered; set these answers manually (they are comments in the file):\n")
	}
	for _, why := range reasons {
		fmt.Fprintf(w, "  %s\n", plain.OneLine(why))
		for _, f := range of[why] {
			until := ""
			if f.Value != nil && f.Question.Kind != steps.YAML {
				until = "    # current value: " + plain.OneLine(f.Question.Show(f.Value))
			}
			fmt.Fprintf(w, "    %-24s %s%s\n", f.Question.Key, f.Question.Title, until)
		}
	}
}
