package steps

import (
	"slices"
	"strings"
)

// Cell is one check on one side. Each cell has its own verdict.
type Cell struct {
	Step, Check string
	Side        Side
}

// Cells returns the cells of all steps, in the order in which the screen shows them.
func (g *Guide) Cells() []Cell {
	var out []Cell
	for i := range g.Steps {
		out = append(out, g.CellsOf(i)...)
	}
	return out
}

// CellsOf returns the cells of one step.
func (g *Guide) CellsOf(step int) []Cell {
	var out []Cell
	for j := range g.Steps[step].Checks {
		for _, side := range Sides {
			if c := &g.Steps[step].Checks[j]; c.On.Covers(side) {
				out = append(out, Cell{g.Steps[step].Name, c.Name, side})
			}
		}
	}
	return out
}

// CellNamed returns the cell that an entry of Check.Needs refers to. side is the side of the check with that entry. If
// the guide has no such cell, the bool is false.
func (g *Guide) CellNamed(name string, side Side) (Cell, bool) {
	name, peer := strings.CutPrefix(name, "peer/")
	check, step := g.Check(name)
	if check == nil {
		return Cell{}, false
	}
	if peer {
		side = side.Peer()
	}
	if check.On != Both {
		side = check.On
	}
	return Cell{step.Name, check.Name, side}, true
}

// WithNeeds adds the cells that the given cells depend on, directly or indirectly.
func (g *Guide) WithNeeds(cells []Cell) []Cell {
	out := slices.Clone(cells)
	for i := 0; i < len(out); i++ {
		check, _ := g.Check(out[i].Check)
		for _, n := range check.Needs {
			if need, ok := g.CellNamed(n, out[i].Side); ok && !slices.Contains(out, need) {
				out = append(out, need)
			}
		}
	}
	return out
}

// ID returns the identifier of a cell, such as "renku/token-filled@remote".
func (g *Guide) ID(c Cell) string { return g.Name + "/" + c.Check + "@" + string(c.Side) }

// DependsOn returns all cells that c depends on, directly or indirectly. They include the needs of the action that
// fixes c.
func (g *Guide) DependsOn(c Cell) map[Cell]bool {
	out := map[Cell]bool{}
	todo := []Cell{c}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		next := g.Needs(at)
		if check, _ := g.Check(at.Check); check != nil {
			if act, _ := g.FixingAction(check, at.Side); act != nil {
				next = append(next, g.NeedsOf(act.Name, act.On)...)
			}
		}
		for _, n := range next {
			if !out[n] {
				out[n] = true
				todo = append(todo, n)
			}
		}
	}
	return out
}
