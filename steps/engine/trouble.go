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
	Root   bool         // no other cell causes it
	ToDo   bool         // not broken, but not done yet
	Behind []steps.Cell // the cells that it blocks
}

// Troubles returns the failures, unknowns and warnings of a board. Root causes come first, in dependency order. Among
// independent root causes, failures precede absences and symptoms, in the order of the guide. Then come the unknowns
// that another cell causes, then what is to do, because it does not count as a cause, and then the warnings.
func (b *Board) Troubles() []Trouble {
	behind := b.Behind()
	var wrong, gone, rest, warned, undone, untried []Trouble
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
				t.Root, t.ToDo = true, b.State(c) == ToDo
				switch {
				case t.ToDo && t.Result.NotTried:
					untried = append(untried, t)
				case t.ToDo:
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
	return slices.Concat(roots, rest, byDependency(g, undone), byDependency(g, untried), warned)
}

// symptoms filters troubles. If the argument (are) is true, it returns only symptoms. Otherwise it returns only the
// other troubles.
func symptoms(of []Trouble, are bool) []Trouble {
	return slices.DeleteFunc(slices.Clone(of), func(t Trouble) bool { return t.Result.Secondary != are })
}

// fixer returns the action that fixes a cell, or the zero Cell if no action does. The Check of the returned Cell is the
// action's name. The caller must hold b.mu.
func (b *Board) fixer(c steps.Cell) steps.Cell {
	check, _ := b.guide.Check(c.Check)
	act, step := b.guide.Offer(check, c.Side, b.judge(c).verdict)
	if act == nil {
		return steps.Cell{}
	}
	return steps.Cell{Step: step.Name, Check: act.Name, Side: c.Side}
}

// fixesOthers returns the actions that fix a failure other than one that is to do. Each is a Cell as returned by fixer.
// The caller must hold b.mu.
func (b *Board) fixesOthers() map[steps.Cell]bool {
	out := map[steps.Cell]bool{}
	for _, c := range b.guide.Cells() {
		j := b.judge(c)
		if r := j.verdict; !j.masked && r.Status == steps.Fail && !r.NotTried && !b.untouched(c) {
			out[b.fixer(c)] = true
		}
	}
	delete(out, steps.Cell{})
	return out
}

// done returns the number of steps up to the last one that is completed or that this link has begun. A step is
// completed if all of its actions are. An action is completed if a check that it fixes holds on its own side and no
// such check fails. The caller must hold b.mu.
func (b *Board) done() int {
	for i := len(b.guide.Steps) - 1; i >= 0; i-- {
		holds := map[string]bool{} // by action
		for _, c := range b.guide.CellsOf(i) {
			check, _ := b.guide.Check(c.Check)
			act, _ := b.guide.FixingAction(check, c.Side)
			if act == nil || !leavesBehind(act.Doer) {
				continue
			}
			by := act.Name
			switch r := b.results[c]; {
			case r.Unasked:
			case r.Made:
				return i + 1
			case r.Undone:
				holds[by] = false
			case r.Status.Holds() && act.On.Covers(c.Side):
				if _, known := holds[by]; !known {
					holds[by] = true
				}
			case r.Status == steps.Fail:
				holds[by] = false
			}
		}
		if list := slices.Collect(maps.Values(holds)); len(list) > 0 && !slices.Contains(list, false) {
			return i + 1
		}
	}
	return 0
}

// Behind maps each root cause to the cells that it blocks, in the order of the guide. A blocked cell is skipped, or
// unknown like its cause.
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

// byDependency sorts dependencies first. A check depends on its needs and on the needs of the action that fixes it.
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
		at = max(at, 0) // in a cycle, take the first
		out = append(out, left[at])
		left = slices.Delete(left, at, at+1)
	}
	return out
}
