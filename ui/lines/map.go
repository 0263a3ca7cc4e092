package lines

import (
	"carrick/steps"
)

// sayMap reads the map of both sides: for each step, what connects the sides, and the objects on each side.
func (w *walk) sayMap(string) error {
	for _, r := range w.live.Map() {
		var parts []string
		for _, side := range steps.Sides {
			if one := r.Objects[side]; one.Label != "" && len(one.Cells) > 0 {
				parts = append(parts, "On the "+w.role(side)+", "+one.Label+": "+word(one.State))
			}
		}
		head := w.guide().Steps[r.Step].Title
		if to := w.arrow(r.To); to != "" {
			head += ", " + to + ": " + word(r.Arrow.State)
		}
		for _, p := range parts {
			head += ". " + p
		}
		w.out.sentence("Step %d, %s", r.Step+1, head)
	}
	return nil
}

// arrow describes an arrow of the map by the side to which it points.
func (w *walk) arrow(to steps.Side) string {
	switch to {
	case "":
		return ""
	case steps.Both:
		return "connects both sides"
	}
	return "from the " + w.role(to.Peer()) + " to the " + w.role(to)
}
