package steps

// Needs are the cells that the verdict of a cell leans on directly.
func (g *Guide) Needs(c Cell) []Cell {
	check, _ := g.Check(c.Check)
	if check == nil {
		return nil
	}
	return g.CellsNamed(check.Needs, c.Side)
}

// NeedsOf are the cells that must hold before an action is done on a side.
func (g *Guide) NeedsOf(action string, side Side) []Cell {
	a, _ := g.Action(action)
	if a == nil {
		return nil
	}
	return g.CellsNamed(a.Needs, side)
}

// CellsNamed are the cells that needs name, as Check.Needs does, seen from a side.
func (g *Guide) CellsNamed(names []string, side Side) []Cell {
	var out []Cell
	for _, name := range names {
		if need, ok := g.CellNamed(name, side); ok {
			out = append(out, need)
		}
	}
	return out
}
