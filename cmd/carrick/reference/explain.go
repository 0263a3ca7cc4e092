package reference

import (
	"fmt"
	"io"
	"strings"

	"carrick/cluster/nearest"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
)

// Picked contains the checks that Pick selected.
type Picked struct {
	checks []pickedCheck
	whole  bool // the name selected a check by its own name: print all details
}

type pickedCheck struct {
	guide *steps.Guide
	step  *steps.Step
	check *steps.Check
}

// Document returns the output of explain -o json and -o yaml.
func (p Picked) Document() CheckList {
	list := CheckList{APIVersion, "CheckList", []checkDoc{}}
	for _, c := range p.checks {
		list.Checks = append(list.Checks, describeCheck(c.guide, c.step, c.check))
	}
	return list
}

// Pick returns the checks that name selects. "" selects all checks. Guide names have precedence over check names, and
// check names over step names. The suffix @SIDE is ignored. program is the name of the program in error messages.
func Pick(guides []*steps.Guide, program, name string) (Picked, error) {
	name, _, _ = strings.Cut(name, "@")
	guide, rest, qualified := strings.Cut(name, "/")
	if !qualified {
		guide, rest = "", name
	}
	all, checks, inSteps := Picked{}, Picked{whole: true}, Picked{}
	for _, g := range guides {
		if guide != "" && guide != g.Name {
			continue
		}
		current := g.Current(rest)
		for i := range g.Steps {
			s := &g.Steps[i]
			for j := range s.Checks {
				c := pickedCheck{g, s, &s.Checks[j]}
				switch {
				case rest == "" || rest == g.Name && guide == "":
					all.checks = append(all.checks, c)
				case current == c.check.Name:
					checks.checks = append(checks.checks, c)
				case rest == s.Name:
					inSteps.checks = append(inSteps.checks, c)
				}
			}
		}
	}
	for _, p := range []Picked{all, checks, inSteps} {
		if len(p.checks) > 0 {
			return p, nil
		}
	}
	return Picked{}, exit.Usagef(
		"no guide, step or check is called %q%s; %s explain lists them", name,
		nearest.Hint(name, explicable(guides, qualified)), program,
	)
}

// explicable returns all names that explain accepts. If qualified is true, names of steps and checks have their guide
// as prefix.
func explicable(guides []*steps.Guide, qualified bool) []string {
	var out []string
	for _, g := range guides {
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

// Print prints one line per check, grouped by step. If the user named a single check, Print prints all details of that
// check instead.
func (p Picked) Print(w io.Writer) {
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

func explainCheck(w io.Writer, c pickedCheck) {
	d := describeCheck(c.guide, c.step, c.check)
	fmt.Fprintf(w, "%s: %s\n\n", d.ID, d.Title)
	const hang = "           "
	say := func(word, text string) {
		fmt.Fprintf(w, "  %-9s%s\n", word, strings.TrimLeft(plain.Hanging(text, hang), " "))
	}
	list := func(word string, i int, text string) { // indents continuation lines of an entry
		lines := strings.ReplaceAll(plain.Hanging(text, hang), "\n", "\n  ")
		fmt.Fprintf(w, "  %-9s%s\n", first(i, word), strings.TrimLeft(lines, " "))
	}
	if d.NotChecked != "" {
		say("Not", "checked by carrick: "+d.NotChecked)
	}
	say("Why", d.Why)
	say("Where", place(c.guide, d))
	say("Step", fmt.Sprintf("%d %s (%s)", number(c.guide, c.step), c.step.Title, d.Step))
	for i, need := range d.Needs {
		of, _ := c.guide.Check(strings.TrimPrefix(need, "peer/"))
		list("Needs", i, need+": "+of.Title)
	}
	for i, by := range d.NeededBy {
		of, _ := c.guide.Check(by)
		list("Blocks", i, by+": "+of.Title)
	}
	if d.Waits != "" {
		say("Waits", "at most "+d.Waits+", counted from the object's timestamp; after that the check fails")
	}
	for i, act := range d.FixedBy {
		_, by := c.guide.Action(act.Name)
		list("Fix", i, fmt.Sprintf("carrick apply LINK --step %s (%s: %s)", by.Name, act.Name, act.Title))
	}
	if len(d.FixedBy) == 0 && d.NotChecked == "" {
		say("Fix", "carrick has no action for this check; its finding contains the fix")
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

func place(g *steps.Guide, d checkDoc) string {
	where := "on both sides: " + g.Sides[steps.Local].Name + " and " + g.Sides[steps.Remote].Name
	if d.On != steps.Both {
		where = "on the " + g.Sides[d.On].Name + " " + string(g.Sides[d.On].Kind)
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

// first returns word for the first line of a list and "" for all others.
func first(i int, word string) string {
	if i > 0 {
		return ""
	}
	return word
}
