package engine

import (
	"maps"
	"slices"

	"carrick/steps"
)

// Trouble is a cell that fails, is unknown or warns.
type Trouble struct {
	Cell   steps.Cell
	Result steps.Result
	Root   bool         // it does not follow from another cell
	Behind []steps.Cell // the cells that it blocks
}

// Troubles returns the failures, the unknowns and the warnings of a board. The failures and unknowns that don't follow
// from another cell come first: in order of dependency, then failures before absences and symptoms, in the order of the
// guide. Then come the unknowns that follow from another cell, and the warnings. Last comes what the guide has not
// created or tried yet, which is not a cause, unless the action that creates it also fixes another failure.
func (b *Board) Troubles() []Trouble {
	behind, done := b.Behind(), b.done()
	var wrong, gone, rest, warned, undone, untried []Trouble
	mends := b.mendsOthers()
	for i := range b.guide.Steps {
		for _, c := range b.guide.CellsOf(i) {
			t := Trouble{Cell: c, Result: b.Verdict(c), Behind: behind[c]}
			switch _, masked := b.Cause(c); {
			case t.Result.Status == steps.Warn:
				t.Root = true
				warned = append(warned, t)
			case t.Result.Status != steps.Fail && t.Result.Status != steps.Unknown:
			case masked:
				rest = append(rest, t)
			default:
				t.Root = true
				switch {
				case t.Result.NotTried:
					untried = append(untried, t)
				case t.Result.Undone && i >= done && !mends[b.mending(c)]:
					undone = append(undone, t)
				case t.Result.Undone, t.Result.Secondary:
					gone = append(gone, t)
				default:
					wrong = append(wrong, t)
				}
			}
		}
	}
	g := b.guide
	roots := byDependency(g, slices.Concat(wrong, gone))
	warned = slices.Concat(symptoms(warned, false), symptoms(warned, true))
	return slices.Concat(roots, rest, warned, byDependency(g, undone), byDependency(g, untried))
}

// symptoms returns the troubles that are symptoms, or those that are not.
func symptoms(of []Trouble, are bool) []Trouble {
	return slices.DeleteFunc(slices.Clone(of), func(t Trouble) bool { return t.Result.Secondary != are })
}

// mending returns the action that fixes a cell, as a cell whose Check is the action's name, or the zero Cell if there
// is none.
func (b *Board) mending(c steps.Cell) steps.Cell {
	check, _ := b.guide.Check(c.Check)
	act, step := b.guide.Offer(check, c.Side, b.Verdict(c))
	if act == nil {
		return steps.Cell{}
	}
	return steps.Cell{Step: step.Name, Check: act.Name, Side: c.Side}
}

// mendsOthers returns the actions that fix something other than an absence, in the form of mending.
func (b *Board) mendsOthers() map[steps.Cell]bool {
	out := map[steps.Cell]bool{}
	for _, c := range b.guide.Cells() {
		r := b.Verdict(c)
		if _, masked := b.Cause(c); !masked && r.Status == steps.Fail && !r.Undone && !r.NotTried {
			out[b.mending(c)] = true
		}
	}
	delete(out, steps.Cell{})
	return out
}

// done returns the number of steps up to the last one that has a completed action. An action is completed if a check
// that it fixes holds and no such check reports an absence.
func (b *Board) done() int {
	for i := len(b.guide.Steps) - 1; i >= 0; i-- {
		holds := map[steps.Cell]bool{} // by action
		for _, c := range b.guide.CellsOf(i) {
			check, _ := b.guide.Check(c.Check)
			act, step := b.guide.FixingAction(check, c.Side)
			if act == nil || !leavesBehind(act.Doer) {
				continue
			}
			by := steps.Cell{Step: step.Name, Check: act.Name, Side: c.Side}
			switch r := b.own(c); {
			case r.Unasked:
			case r.Undone:
				holds[by] = false
			case r.Status.Holds():
				if _, known := holds[by]; !known {
					holds[by] = true
				}
			}
		}
		if slices.Contains(slices.Collect(maps.Values(holds)), true) {
			return i + 1
		}
	}
	return 0
}

// Behind returns, for each cell, the cells that it blocks, in the order of the guide: those that are skipped, or
// unknown like the cell itself.
func (b *Board) Behind() map[steps.Cell][]steps.Cell {
	out := map[steps.Cell][]steps.Cell{}
	for _, c := range b.guide.Cells() {
		if root, masked := b.Cause(c); masked {
			if s := b.Verdict(c).Status; s == steps.Skip || s == steps.Unknown {
				out[root] = append(out[root], c)
			}
		}
	}
	return out
}

// byDependency sorts dependencies first: a check depends on its needs, and on those of the action that fixes it.
// Independent troubles keep their order.
func byDependency(g *steps.Guide, list []Trouble) []Trouble {
	reach := map[steps.Cell]map[steps.Cell]bool{}
	for _, t := range list {
		reach[t.Cell] = g.DependsOn(t.Cell)
	}
	left, out := slices.Clone(list), make([]Trouble, 0, len(list))
	for len(left) > 0 {
		at := slices.IndexFunc(left, func(t Trouble) bool {
			return !slices.ContainsFunc(left, func(o Trouble) bool { return o.Cell != t.Cell && reach[t.Cell][o.Cell] })
		})
		at = max(at, 0) // in a cycle, the first
		out = append(out, left[at])
		left = slices.Delete(left, at, at+1)
	}
	return out
}
