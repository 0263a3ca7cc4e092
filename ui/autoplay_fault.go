package ui

import (
	"fmt"
	"slices"
	"strconv"

	"carrick/steps"
)

// onFault returns the next step of the script at the start of a demo with a fault. The script goes to the cell that
// shows the fault and names the cause. If a key applies the fix, the script presses that key. The script then returns
// to the first step of the guide. After that, onFault returns false.
func (p *player) onFault(s *stepPage) (move, bool) {
	if p.told["fault/over"] || p.w.Fault == "" {
		return move{}, false
	}
	if !p.told["sides/begin"] && !p.told["fault/said"] { // the link was opened without the page that says it
		return move{id: "fault/said", text: "This demo starts with a fault: " + p.w.Fault}, true
	}
	if len(p.w.Broken) == 0 {
		return move{}, false
	}
	if done, all := p.a.live.Looked(); done < all {
		return move{id: "fault/look", kind: wait, text: "Running every check of every step once …", what: p.unseen}, true
	}
	cell, ok := p.broken(s)
	switch {
	case ok && cell.Step != s.step().Name:
		return p.toStep(
			s, cell.Step,
			fmt.Sprintf("The fault shows in step %s. The demo goes to that step first.", s.guide().Step(cell.Step).Title),
		), true
	case ok && p.a.now().Sub(p.still) < sure:
		return move{id: "sure/" + s.step().Name, kind: wait, text: "Checking …", what: p.unseen}, true
	case ok:
		return p.mend(s, cell)
	case !p.told["fault/mended"] && p.fixed(s):
		return move{id: "fault/mended", text: p.mended()}, true
	}
	if first := &s.guide().Steps[0]; s.step() != first {
		return p.toStep(s, first.Name, "Now the demo goes through all steps from the start."), true
	}
	p.told["fault/over"] = true
	return move{}, false
}

// broken returns the first cell that still shows the fault. Once the script has handled one such cell, broken returns
// false, because the script visits the other cells later.
func (p *player) broken(s *stepPage) (steps.Cell, bool) {
	for _, c := range p.w.Broken {
		id := s.guide().ID(c)
		if p.told["left/"+id] || p.told["later/"+id] || p.fixed(s) {
			break
		}
		switch v := p.a.live.Board.Verdict(c).Status; {
		case v == steps.Fail, v == steps.Unknown, p.told["ran/"+id] && !v.Holds():
			return c, true
		}
	}
	return steps.Cell{}, false
}

// fixed reports whether the player has fixed a cell that showed the fault.
func (p *player) fixed(s *stepPage) bool {
	for _, c := range p.w.Broken {
		if id := s.guide().ID(c); (p.told["fix/"+id] || p.told["ran/"+id]) && p.a.live.Board.Verdict(c).Status.Holds() {
			return true
		}
	}
	return false
}

// mended returns the caption after the fix. It contains the number of changes, and whether other checks still fail.
func (p *player) mended() string {
	text := "The check passes now."
	ran := func(c steps.Cell) bool { return p.told["ran/"+p.a.live.Guide().ID(c)] }
	if !slices.ContainsFunc(p.w.Broken, ran) {
		text = fmt.Sprintf("The check passes now, after %s.", steps.Plural(p.a.run.Changed, "change"))
	}
	for _, c := range p.w.Broken {
		if !p.a.live.Board.Verdict(c).Status.Holds() {
			return text + " The fault still affects other checks."
		}
	}
	return text + " The fault affects no other check."
}

// toStep returns the step of the script that goes to another guide step. It presses the number of the guide step if a
// single digit is enough, and otherwise the right arrow key.
func (p *player) toStep(s *stepPage, name, text string) move {
	for i := range s.guide().Steps {
		if s.guide().Steps[i].Name != name {
			continue
		}
		if i < 9 || s.at < 8 { // digits reach only step 9
			n := strconv.Itoa(min(i+1, 9))
			return move{id: "to/" + name, text: text, key: n, hint: hint{n, "step"}}
		}
		return move{id: fmt.Sprintf("to/%s/%d", name, s.at), kind: at1, key: "right"}
	}
	return move{id: "to/nowhere", kind: halt, text: "The guide has no step " + name + "."}
}
