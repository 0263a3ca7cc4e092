package steps

// Needs are the cells that the verdict of a cell leans on directly.
func (g *Guide) Needs(c Cell) []Cell {
	check, _ := g.Check(c.Check)
	if check == nil {
		return nil
	}
	return g.needs(check.Needs, c.Side)
}

// NeedsOf are the cells that must hold before an action is done on a side.
func (g *Guide) NeedsOf(action string, side Side) []Cell {
	a, _ := g.Action(action)
	if a == nil {
		return nil
	}
	return g.needs(a.Needs, side)
}

func (g *Guide) needs(names []string, side Side) []Cell {
	var out []Cell
	for _, name := range names {
		if need, ok := g.need(name, side); ok {
			out = append(out, need)
		}
	}
	return out
}
