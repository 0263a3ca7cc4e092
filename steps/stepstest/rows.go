package stepstest

import (
	"slices"
	"testing"

	"carrick/steps"
)

// Row is one requirement of the upstream project, with the checks that verify it. Number is its number in the list of
// requirements.
type Row struct {
	Number int
	Asks   string
	Checks []string
}

// Rows verifies that each of count rows has a check, and that at most one row in ten is omitted. The want sections of
// the states in dir define in which states a check passes and in which it does not. Play verifies these sections.
func Rows(t *testing.T, g *steps.Guide, dir string, count int, rows []Row) {
	t.Helper()
	wanted := wanted(t, dir)
	var out []int
	for i, r := range rows {
		if r.Number != i+1 {
			t.Fatalf("row %d is at the position of row %d", r.Number, i+1)
		}
		if len(r.Checks) == 0 {
			t.Errorf("row %d (%s) has no check", r.Number, r.Asks)
		}
		looked := false
		for _, name := range r.Checks { // go through all checks, to report everything that is missing at once
			looked = r.looksAt(t, g, name, wanted[name]) || looked
		}
		if !looked {
			out = append(out, r.Number)
		}
	}
	if len(rows) != count || len(out)*10 > count {
		t.Errorf(
			"%d rows of %d, of which %d are skipped: %v; at most one in ten rows can be skipped", len(rows), count, len(out),
			out,
		)
	}
}

// looksAt reports whether the guide really runs a check of a row, instead of reporting it as not checked. It fails the
// test unless the check passes in one state and does not pass in another.
func (r Row) looksAt(t *testing.T, g *steps.Guide, name string, states map[steps.Status][]string) bool {
	t.Helper()
	c, _ := g.Check(name)
	if c == nil {
		t.Errorf("row %d (%s): the guide has no check %q", r.Number, r.Asks, name)
		return false
	}
	if c.NotChecked != "" {
		return false
	}
	bad := slices.Concat(states[steps.Fail], states[steps.Warn])
	if c.On == steps.Both && len(c.Needs) == 0 { // such a check fails only if a side does not answer
		bad = slices.Concat(bad, states[steps.Unknown])
	}
	if len(states[steps.Pass]) == 0 || len(bad) == 0 {
		t.Errorf(
			"row %d (%s): check %s passes in %d states and fails or warns in %d", r.Number, r.Asks, name,
			len(states[steps.Pass]), len(bad),
		)
	}
	return true
}

// everywhere lists the checks that all guides have and that belong to no requirement of an upstream project.
var everywhere = []string{"reachable", "signed-in", "clock", "two-clusters", "admin-permissions"}

// EveryCheckHasARow verifies that each check of a guide has a row. Checks in everywhere and beside are exempt.
func EveryCheckHasARow(t *testing.T, g *steps.Guide, rows []Row, beside ...string) {
	t.Helper()
	named := slices.Concat(everywhere, beside)
	for _, r := range rows {
		named = append(named, r.Checks...)
	}
	for _, s := range g.Steps {
		for _, c := range s.Checks {
			if !slices.Contains(named, c.Name) {
				t.Errorf("check %s of step %s belongs to no row", c.Name, s.Name)
			}
		}
	}
}
