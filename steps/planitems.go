package steps

// Of are the things of a plan that have that verb.
func (p *Plan) Of(v Verb) []Item {
	var out []Item
	for _, a := range p.Actions {
		for _, it := range a.Change.Items {
			if it.Verb == v {
				out = append(out, it)
			}
		}
	}
	return out
}

// Mends tells whether an action of the plan makes a check hold.
func (p *Plan) Mends(c *Check) bool {
	for _, a := range p.Actions {
		if c.Mend != "" && a.Action == c.Mend {
			return true
		}
	}
	return false
}
