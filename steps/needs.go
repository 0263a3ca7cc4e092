package steps

// Needs returns the cells that a cell depends on directly.
func (g *Guide) Needs(c Cell) []Cell {
	check, _ := g.Check(c.Check)
	if check == nil {
		return nil
	}
	return g.CellsNamed(check.Needs, c.Side)
}

// NeedsOf returns the cells that must hold before an action runs on a side.
func (g *Guide) NeedsOf(action string, side Side) []Cell {
	a, _ := g.Action(action)
	if a == nil {
		return nil
	}
	return g.CellsNamed(a.Needs, side)
}

// CellsNamed returns the cells that names refers to, in the notation of Check.Needs. The names are relative to side.
func (g *Guide) CellsNamed(names []string, side Side) []Cell {
	var out []Cell
	for _, name := range names {
		if need, ok := g.CellNamed(name, side); ok {
			out = append(out, need)
		}
	}
	return out
}
