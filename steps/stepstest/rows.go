package stepstest

import (
	"slices"
	"testing"

	"carrick/steps"
)

// Row is one thing that upstream needs, by its number in the list of what it
// was found to need, and the checks that look at it.
type Row struct {
	Number int
	Asks   string
	Checks []string
}

// Rows proves that each of count rows has a check, and that at most one row in
// ten is left out. What the states in dir are wanted to be says in which a check
// passes and in which it does not; Play proves that the checks say so.
func Rows(t *testing.T, g *steps.Guide, dir string, count int, rows []Row) {
	t.Helper()
	wanted := Wanted(t, dir)
	var out []int
	for i, r := range rows {
		if r.Number != i+1 {
			t.Fatalf("row %d stands in the place of row %d", r.Number, i+1)
		}
		if len(r.Checks) == 0 {
			t.Errorf("row %d (%s): no check looks at it", r.Number, r.Asks)
		}
		looked := false
		for _, name := range r.Checks { // each of them, so that all that lacks is said at once
			looked = r.looksAt(t, g, name, wanted[name]) || looked
		}
		if !looked {
			out = append(out, r.Number)
		}
	}
	if len(rows) != count || len(out)*10 > count {
		t.Errorf("%d rows of %d, of which %d are left out: %v; at most one in ten may be", len(rows), count, len(out), out)
	}
}

// looksAt tells whether a check of a row is more than a word that it is left
// out, and asks for a state in which it passes and one in which it does not.
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
	if c.On == steps.Both && len(c.Needs) == 0 { // a side that does not answer is all that it can find
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

// everywhere are the checks that guides have beside what upstream needs.
var everywhere = []string{"reachable", "signed-in", "clock", "two-clusters", "may-make"}

// EveryCheckHasARow proves that no check of a guide stands there without a row, but
// those that every guide has, and those beside.
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
