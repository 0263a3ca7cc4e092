package model

import (
	"fmt"
	"slices"
	"strings"

	"carrick/cluster/clean"
	"carrick/steps"
)

// Fix is what to do about a finding.
type Fix struct {
	Action *steps.Action // that does it; nil: carrick has none, or nothing to do
	Title  string        // of the action, and its step where that is another one
	Run    []string      // lines to run, or to read
}

// Offer is the action that mends a cell, and its step; nil where there is none,
// where the cell does not ask for it, and where all that the step creates is
// there: then the finding says what else to do.
func (l *Live) Offer(c steps.Cell) (*steps.Action, *steps.Step) {
	check, _ := l.Guide().Check(c.Check)
	r := l.Board.Verdict(c)
	action, step := l.Guide().Offer(check, c.Side, r)
	if action == nil || r.Status.Holds() && r.Status != steps.Warn || r.Status == steps.Skip || r.Status == steps.Pending {
		return nil, nil
	}
	if l.Changes(step.Name) == 0 {
		return nil, nil
	}
	return action, step
}

// Fix is what to do about a cell as it stands.
func (l *Live) Fix(c steps.Cell) Fix {
	var out Fix
	r := l.Board.Verdict(c)
	action, step := l.Offer(c)
	if action != nil && (r.Fix != "" || r.Status == steps.Fail) {
		out.Action, out.Title = action, action.Title+l.inStep(step, c)
	}
	for _, line := range strings.Split(strings.TrimSpace(r.Fix), "\n") {
		if line != "" && (out.Action == nil || !strings.HasPrefix(line, "carrick apply")) { // the action does just that
			out.Run = append(out.Run, line)
		}
	}
	return out
}

// inStep names a step where it is not that of a cell: " (step Tunnel)".
func (l *Live) inStep(step *steps.Step, c steps.Cell) string {
	if step.Name == c.Step {
		return ""
	}
	return " (step " + step.Title + ")"
}

// Role is the guide's word for a side.
func (l *Live) Role(side steps.Side) string { return l.Guide().Sides[side].Name }

// Title is a cell in words, with its step where that is not the one of seen:
// "provider: the tunnel is up (step Tunnel)".
func (l *Live) Title(c, seen steps.Cell) string {
	check, step := l.Guide().Check(c.Check)
	return l.Role(c.Side) + ": " + check.Title + l.inStep(step, seen)
}

// Cause is what stands in the way of a cell that says nothing of its own: the
// cell at its root and what that found. "": it speaks for itself.
func (l *Live) Cause(c steps.Cell) string {
	root, masked := l.Board.Cause(c)
	if !masked || l.Board.Verdict(c).Status != steps.Skip {
		return ""
	}
	return l.Title(root, c) + ": " + l.Board.Verdict(root).Found
}

// Stops are the cells that say nothing because of one.
func (l *Live) Stops(c steps.Cell) []steps.Cell {
	if s := l.Board.Verdict(c).Status; s == steps.Skip || s.Holds() {
		return nil
	}
	return l.Board.Behind()[c]
}

// Copied is what to copy of a cell: what to do, else what was found.
func (l *Live) Copied(c steps.Cell) string {
	r := l.Board.Verdict(c)
	if r.Fix != "" {
		return r.Fix
	}
	return r.Found
}

// From is where a cell is looked at from, and what is there: "this machine, kind-milan".
func (l *Live) From(c steps.Cell) string {
	check, _ := l.Guide().Check(c.Check)
	from, role := check.From, l.Guide().Sides[c.Side]
	switch {
	case from != "":
	case role.Kind == steps.Host:
		from = "the files and commands of the " + role.Name
	default:
		from = "the API server of the " + role.Name
	}
	return from + ", " + l.Session.Endpoint(c.Side).Name
}

// Pages is where to read on about a check.
func (l *Live) Pages(check *steps.Check) []string {
	return append(slices.Clone(check.References), l.Guide().Page)
}

// Explains is the command that says more of a check.
func (l *Live) Explains(check *steps.Check) string {
	return "carrick explain " + l.Guide().Name + "/" + check.Name
}

// OneLine makes text from outside fit for one line.
func OneLine(s string) string { return strings.Join(strings.Fields(clean.Text(s)), " ") }

// Plural is a number and its word: "1 change", "3 changes".
func Plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
