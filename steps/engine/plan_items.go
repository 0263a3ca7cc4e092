package engine

import (
	"slices"

	"carrick/steps"
)

// Of returns the items of a plan with verb v.
func (p *Plan) Of(v steps.Verb) []steps.Item {
	var out []steps.Item
	for _, a := range p.Actions {
		for _, it := range a.Change.Items {
			if it.Verb == v {
				out = append(out, it)
			}
		}
	}
	return out
}

// Held returns the items of an undo that this link created and that are kept because others depend on them.
func (p *Plan) Held() []steps.Item {
	return slices.DeleteFunc(p.Of(steps.Leave), func(it steps.Item) bool { return !it.Held })
}

// Leaves reports whether an undo keeps something that the link wrote or that has the link's ownership label.
func (p *Plan) Leaves() bool {
	return slices.ContainsFunc(
		p.Of(steps.Leave), func(it steps.Item) bool { return it.Unentered || it.Left || it.Entry != nil },
	)
}

// ByOthers returns the items of an undo that other programs created and that are kept.
func (p *Plan) ByOthers() []steps.Item {
	return slices.DeleteFunc(p.Of(steps.Leave), func(it steps.Item) bool { return !it.ByOthers })
}

func (p *Plan) dropByOthers() {
	for i := range p.Actions {
		c := &p.Actions[i].Change
		c.Items = slices.DeleteFunc(c.Items, func(it steps.Item) bool { return it.ByOthers })
	}
	p.Actions = slices.DeleteFunc(p.Actions, func(a Planned) bool { return len(a.Change.Items) == 0 && a.Pending == "" })
}

// Unentered returns the items that an undo keeps because the link's inventory does not contain them.
func (p *Plan) Unentered() []steps.Item {
	return slices.DeleteFunc(p.Of(steps.Leave), func(it steps.Item) bool { return !it.Unentered })
}

// Left returns the files that this link wrote and that an undo keeps because someone has changed them since.
func (p *Plan) Left() []steps.Item {
	return slices.DeleteFunc(p.Of(steps.Leave), func(it steps.Item) bool { return !it.Left })
}

// Fixes reports whether an action of the plan fixes a check on a side.
func (p *Plan) Fixes(g *steps.Guide, c steps.Cell) bool {
	check, _ := g.Check(c.Check)
	if check == nil {
		return false
	}
	action, _ := g.FixingAction(check, c.Side)
	for _, a := range p.Actions {
		if action != nil && a.Action == action.Name {
			return true
		}
	}
	return false
}
