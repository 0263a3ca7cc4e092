package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"carrick/steps"
)

func (a *app) explain() *cobra.Command {
	output := "text"
	cmd := &cobra.Command{
		Use: "explain [GUIDE|STEP|CHECK]", Short: "What a check looks at, why, and where upstream says so",
		Long: "Explains a check: what it asserts, where it looks, what goes wrong if it does not hold,\nwhat makes it hold, what depends on it, and where upstream says so. It asks no cluster.\nThe name is GUIDE, GUIDE/STEP, GUIDE/CHECK, an id of a report, or a step's or check's name alone.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("one check at a time: %s", cmd.UseLine())
			}
			return format(output, outputs["explain"]...)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := a.pick(strings.Join(args, ""))
			if err != nil {
				return err
			}
			if output != "text" {
				return printDocument(a.out, output, checkList{apiVersion, "CheckList", found.docs()})
			}
			found.print(a.out)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "`format`: text, json or yaml")
	return cmd
}

// picked are the checks that a name stands for.
type picked struct {
	checks []pickedCheck
	whole  bool // one check is meant: all is told of it
}

type pickedCheck struct {
	guide *steps.Guide
	step  *steps.Step
	check *steps.Check
}

func (p picked) docs() []checkDoc {
	docs := []checkDoc{}
	for _, c := range p.checks {
		docs = append(docs, describeCheck(c.guide, c.step, c.check))
	}
	return docs
}

// pick finds what a name means: "" is everything, then guides, checks and
// steps, in that order. A check of a report may have its side with it.
func (a *app) pick(name string) (picked, error) {
	name, _, _ = strings.Cut(name, "@")
	guide, rest, qualified := strings.Cut(name, "/")
	if !qualified {
		guide, rest = "", name
	}
	all, checks, inSteps := picked{}, picked{whole: true}, picked{}
	for _, g := range a.guides {
		if guide != "" && guide != g.Name {
			continue
		}
		for i := range g.Steps {
			s := &g.Steps[i]
			for j := range s.Checks {
				c := pickedCheck{g, s, &s.Checks[j]}
				switch {
				case rest == "" || rest == g.Name && guide == "":
					all.checks = append(all.checks, c)
				case rest == c.check.Name:
					checks.checks = append(checks.checks, c)
				case rest == s.Name:
					inSteps.checks = append(inSteps.checks, c)
				}
			}
		}
	}
	for _, p := range []picked{all, checks, inSteps} {
		if len(p.checks) > 0 {
			return p, nil
		}
	}
	return picked{}, usage("no guide, step or check is called %q%s; %s explain lists them", name, meant(name, a.explicable(qualified)), a.name)
}

// explicable are all names that explain knows, with their guide where it was
// given.
func (a *app) explicable(qualified bool) []string {
	var out []string
	for _, g := range a.guides {
		prefix := ""
		if out = append(out, g.Name); qualified {
			prefix = g.Name + "/"
		}
		for i := range g.Steps {
			out = append(out, prefix+g.Steps[i].Name)
			for _, c := range g.Steps[i].Checks {
				out = append(out, prefix+c.Name)
			}
		}
	}
	return out
}

// print writes a line a check, by step; or all of one, or of those that have
// the same name in several guides.
func (p picked) print(w io.Writer) {
	var guide *steps.Guide
	var step *steps.Step
	for i, c := range p.checks {
		if p.whole {
			if i > 0 {
				fmt.Fprintln(w)
			}
			explainCheck(w, c)
			continue
		}
		if c.guide != guide && guide != nil {
			fmt.Fprintln(w)
		}
		if guide = c.guide; c.step != step {
			step = c.step
			fmt.Fprintf(w, "%s (%s/%s)\n", step.Title, guide.Name, step.Name)
		}
		title := c.check.Title
		if c.check.NotChecked != "" {
			title += " (not checked by carrick)"
		}
		fmt.Fprintf(w, "  %-40s %s\n", guide.Name+"/"+c.check.Name, title)
	}
}

// explainCheck writes all that is known of a check.
func explainCheck(w io.Writer, c pickedCheck) {
	d := describeCheck(c.guide, c.step, c.check)
	fmt.Fprintf(w, "%s: %s\n\n", d.ID, d.Title)
	const hang = "           "
	say := func(word, text string) {
		fmt.Fprintf(w, "  %-9s%s\n", word, strings.TrimLeft(hanging(text, hang), " "))
	}
	list := func(word string, i int, text string) { // the lines of one entry belong together
		lines := strings.ReplaceAll(hanging(text, hang), "\n", "\n  ")
		fmt.Fprintf(w, "  %-9s%s\n", first(i, word), strings.TrimLeft(lines, " "))
	}
	if d.NotChecked != "" {
		say("Not", "checked by carrick: "+d.NotChecked)
	}
	say("Why", d.Why)
	say("Looks", place(c.guide, d))
	say("Step", fmt.Sprintf("%d %s (%s)", number(c.guide, c.step), c.step.Title, d.Step))
	for i, need := range d.Needs {
		of, _ := c.guide.Check(strings.TrimPrefix(need, "peer/"))
		list("Needs", i, need+": "+of.Title)
	}
	for i, by := range d.NeededBy {
		of, _ := c.guide.Check(by)
		list("Silences", i, by+": "+of.Title)
	}
	if d.Waits != "" {
		say("Waits", "at most "+d.Waits+", from the object's own time; then it fails")
	}
	for i, act := range d.MendedBy {
		_, by := c.guide.Action(act.Name)
		list("Fix", i, fmt.Sprintf("carrick apply LINK --step %s (%s: %s)", by.Name, act.Name, act.Title))
	}
	if len(d.MendedBy) == 0 && d.NotChecked == "" {
		say("Fix", "nothing that carrick does: the check says what to do, with what it has found")
	}
	if d.NotChecked == "" {
		say("Run", "carrick check LINK --only "+d.Name)
	}
	for i, s := range d.See {
		fmt.Fprintf(w, "  %-9s%s\n", first(i, "See"), s.Note)
		for _, address := range s.Addresses {
			if address != s.Note {
				fmt.Fprintf(w, "%s  %s\n", hang, address)
			}
		}
	}
}

// place is where a check looks.
func place(g *steps.Guide, d checkDoc) string {
	where := "at both sides: " + g.Sides[steps.Local].Name + " and " + g.Sides[steps.Remote].Name
	if d.On != steps.Both {
		where = "at the " + g.Sides[d.On].Name + " " + string(g.Sides[d.On].Kind)
	}
	if d.From != "" {
		where += ", from: " + d.From
	}
	return where
}

func number(g *steps.Guide, s *steps.Step) int {
	for i := range g.Steps {
		if &g.Steps[i] == s {
			return i + 1
		}
	}
	return 0
}

// first is a word in the first of several lines.
func first(i int, word string) string {
	if i > 0 {
		return ""
	}
	return word
}
