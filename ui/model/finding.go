package model

import (
	"slices"
	"strings"

	"carrick/cluster/clean"
	"carrick/steps"
)

// Fix is the way to fix a finding.
type Fix struct {
	Action *steps.Action // nil if no action fixes it, or if there is nothing to do
	Title  string        // title of the action; includes its step if the cell is in another step
	Run    []string      // commands or instructions
}

// Offer returns the action that fixes a cell, and its step. It returns nil if no action fixes the cell, if the cell
// needs no fix, or if everything that the step creates exists. In the last case the finding contains another fix.
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

// Fix returns the fix of a cell in its current state.
func (l *Live) Fix(c steps.Cell) Fix {
	var out Fix
	r := l.Board.Verdict(c)
	action, step := l.Offer(c)
	if action != nil && (r.Fix != "" || r.Status == steps.Fail) {
		out.Action, out.Title = action, action.Title+l.inStep(step, c)
	}
	for _, line := range strings.Split(strings.TrimSpace(r.Fix), "\n") {
		if line != "" && (out.Action == nil || !strings.HasPrefix(line, "carrick apply")) { // the action does the same
			out.Run = append(out.Run, line)
		}
	}
	return out
}

// inStep returns the title of a step in parentheses, such as " (step Tunnel)". If the cell is in that step, it returns
// "".
func (l *Live) inStep(step *steps.Step, c steps.Cell) string {
	if step.Name == c.Step {
		return ""
	}
	return " (step " + step.Title + ")"
}

// Role returns the guide's name for a side.
func (l *Live) Role(side steps.Side) string { return l.Guide().Sides[side].Name }

// Title names a cell, such as "provider: the tunnel is up". If seen is in another step, the name ends with the step of
// the cell, such as " (step Tunnel)".
func (l *Live) Title(c, seen steps.Cell) string {
	check, step := l.Guide().Check(c.Check)
	return l.Role(c.Side) + ": " + check.Title + l.inStep(step, seen)
}

// Cause describes the root cause of a blocked cell with the name and the finding of that cause. If the cell is not
// blocked, Cause returns "".
func (l *Live) Cause(c steps.Cell) string {
	root, masked := l.Board.Cause(c)
	if !masked || l.Board.Verdict(c).Status != steps.Skip {
		return ""
	}
	return l.Title(root, c) + ": " + l.Board.Verdict(root).Found
}

// Stops returns the cells that a cell blocks.
func (l *Live) Stops(c steps.Cell) []steps.Cell {
	if s := l.Board.Verdict(c).Status; s == steps.Skip || s.Holds() {
		return nil
	}
	return l.Board.Behind()[c]
}

// Copied returns the text that the copy key copies for a cell. This is the fix, or the finding if there is no fix.
func (l *Live) Copied(c steps.Cell) string {
	r := l.Board.Verdict(c)
	if r.Fix != "" {
		return r.Fix
	}
	return r.Found
}

// From returns where a cell is checked from, such as "this machine, kind-milan".
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

// Pages returns addresses for further reading about a check.
func (l *Live) Pages(check *steps.Check) []string {
	return append(slices.Clone(check.References), l.Guide().Page)
}

// Explains returns the command that explains a check.
func (l *Live) Explains(check *steps.Check) string {
	return "carrick explain " + l.Guide().Name + "/" + check.Name
}

// OneLine makes untrusted text safe for display on one line.
func OneLine(s string) string { return strings.Join(strings.Fields(clean.Text(s)), " ") }
