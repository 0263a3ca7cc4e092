package model

import (
	"slices"

	"carrick/steps"
	"carrick/steps/engine"
)

// MapRow is the row of one step in the map of both sides. It has an object on each side and an arrow between them.
type MapRow struct {
	Step    int // index in the guide
	Objects map[steps.Side]MapPart
	Arrow   MapPart
	To      steps.Side // side to which the arrow points, or Both; "" without an arrow
}

// MapPart is an object or an arrow of the map.
type MapPart struct {
	Label string // "" if the step has nothing in this place
	State engine.State
	Cells []steps.Cell // the checks that determine the state
}

// First returns the cell that explains the state of the part. This is the first cell with that state. Without cells, ok
// is false.
func (p MapPart) First(b *engine.Board) (c steps.Cell, ok bool) {
	for _, c := range p.Cells {
		if b.State(c) == p.State {
			return c, true
		}
	}
	return steps.Cell{}, false
}

// Map returns the map of both sides, one row per step.
func (l *Live) Map() []MapRow {
	g, b := l.Guide(), l.Board
	var out []MapRow
	for i := range g.Steps {
		s := &g.Steps[i]
		row := MapRow{Step: i, Objects: map[steps.Side]MapPart{}, To: s.Map.Arrow}
		cells := g.CellsOf(i)
		for _, side := range steps.Sides {
			part := MapPart{
				Label: s.Map.Label(side),
				Cells: slices.DeleteFunc(slices.Clone(cells), func(c steps.Cell) bool { return c.Side != side }),
			}
			if part.Label == "" && s.Map == (steps.MapRow{}) && len(part.Cells) > 0 {
				part.Label = s.Title
			}
			part.State = worst(b.CountOf(part.Cells))
			row.Objects[side] = part
		}
		row.Arrow = MapPart{State: worst(b.CountOf(cells)), Cells: cells}
		if row.To != "" {
			row.Arrow.Label = s.Name
		}
		out = append(out, row)
	}
	return out
}

// worst returns the state that determines how a group of cells is shown. A group with blocked cells is not complete,
// regardless of its other cells.
func worst(n engine.Counts) engine.State {
	for _, s := range []engine.State{
		engine.Failed, engine.Unknown, engine.Checking, engine.InProgress, engine.ToDo, engine.Later, engine.Warning,
		engine.OK, engine.Skipped,
	} {
		if n.Of(s) > 0 {
			return s
		}
	}
	return engine.Off
}
