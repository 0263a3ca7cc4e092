package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carrick/cluster/tracked"
	"carrick/steps"
)

// AwaitsError says that a run on one side did all that it can do alone, and what
// of the other side it waits for: that side is known by a file of facts, and its
// admin has to go on.
type AwaitsError struct {
	Done int    // things changed
	Own  string // the guide's word for the side that was worked on
	Peer string // and for the one that it waits for
	For  []Awaited
	Next []string // what to run next, in order: "the provider's admin: carrick apply LINK"
}

// Awaited is an action that was put off, or a check that does not hold yet.
type Awaited struct {
	Step, Title string
	Until       string // what of the other side is lacking, in words
}

func (e *AwaitsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the %s's side is done as far as it goes alone; the rest waits for the %s:", e.Own, e.Peer)
	for _, w := range e.For {
		fmt.Fprintf(&b, "\n  %s: %s", w.Title, w.Until)
	}
	b.WriteString("\nNext:")
	for _, line := range e.Next {
		b.WriteString("\n  " + line)
	}
	return b.String()
}

// apart is a run on one side, while the other one is known by its file alone, or not
// at all:
// what was put off, because it needs what that side has still to do.
type apart struct {
	s    *Session
	side steps.Side // that is worked on; "": both sides are here, and nothing is put off
	off  map[string]bool
	told []Awaited
}

func (s *Session) apart() *apart {
	a := &apart{s: s, off: map[string]bool{}}
	for _, side := range steps.Sides {
		end, needed := s.ends[side], !s.guide.Sides[side].Optional
		if end.absent() && (end.PeerFile != nil || needed) && !s.ends[side.Peer()].absent() {
			a.side = side.Peer()
		}
	}
	return a
}

// putOff tells whether an action has to wait for the other side, and notes it.
func (a *apart) putOff(ctx context.Context, p Planned) bool {
	if a.side == "" || (p.Pending == "" && !p.changes()) {
		return false
	}
	action, step := a.s.guide.Action(p.Action)
	for _, c := range a.s.guide.CellsNamed(action.Needs, p.Side) {
		if why := a.behind(ctx, c, map[steps.Cell]bool{}); why != "" {
			a.note(p.Step, p.Title, why)
			a.off[p.Action] = true
			return true
		}
	}
	if p.Pending == "" {
		return false
	}
	now, wanted, err := a.s.planJob(ctx, job{step, action, p.Side})
	if err != nil || !wanted || now.Pending == "" || !now.handed {
		return false
	}
	a.note(p.Step, p.Title, now.Pending)
	a.off[p.Action] = true
	return true
}

func (a *apart) note(step, title, until string) {
	a.told = append(a.told, Awaited{Step: step, Title: title, Until: until})
}

// behind says what of the other side a cell waits for; "": it holds, or does not
// hold for a reason of this side's own.
func (a *apart) behind(ctx context.Context, c steps.Cell, seen map[steps.Cell]bool) string {
	if a.side == "" || seen[c] {
		return ""
	}
	seen[c] = true
	r, _ := a.s.Probe(ctx, c)
	check, _ := a.s.guide.Check(c.Check)
	switch {
	case r.Allows() || check == nil:
		return ""
	case c.Side != a.side:
		return fmt.Sprintf("the %s has to see to it that %s (%s)", a.s.guide.Sides[c.Side].Name, check.Title, c.Check)
	case r.PeerFile:
		return r.Found
	}
	for _, need := range a.s.guide.Needs(c) {
		if why := a.behind(ctx, need, seen); why != "" {
			return why
		}
	}
	if mend, _ := a.s.guide.FixingAction(check, c.Side); mend != nil && a.off[mend.Name] {
		return "comes after what waits above"
	}
	return ""
}

// over is how such a run ends: with what it waits for, if anything.
func (a *apart) over(ctx context.Context, done int) error {
	if len(a.told) == 0 {
		return nil
	}
	own, peer := a.s.guide.Sides[a.side].Name, a.s.guide.Sides[a.side.Peer()].Name
	return &AwaitsError{Done: done, Own: own, Peer: peer, For: a.told, Next: a.s.NextTurn(ctx, a.side)}
}

// NextTurn is what to run next where a side has done its part and the other one
// is known by its file: who runs what, in order.
func (s *Session) NextTurn(ctx context.Context, side steps.Side) []string {
	own, peer, link := s.guide.Sides[side], s.guide.Sides[side.Peer()], s.linkWord()
	return []string{
		fmt.Sprintf("you, and give the file to the %s's admin: %s", peer.Name, s.HandoverCommand(ctx, side)),
		fmt.Sprintf(
			"the %s's admin, with your file in their link file: carrick apply LINK --side %s, then carrick handover LINK "+
				"--side %s (LINK is their own)",
			peer.Name, peer.Flag(), peer.Flag(),
		),
		fmt.Sprintf("you, once their file is in the place of the old one: carrick apply %s --side %s", link, own.Flag()),
	}
}

// HandoverCommand is what the admin of a side runs to hand it over.
func (s *Session) HandoverCommand(ctx context.Context, side steps.Side) string {
	cmd := fmt.Sprintf("carrick handover %s --side %s", s.linkWord(), s.guide.Sides[side].Flag())
	if s.seals(ctx, side) {
		cmd += " --to RECIPIENT"
	}
	return cmd
}

func (s *Session) linkWord() string {
	if s.link.Path == "" {
		return s.link.Name() + ".yaml"
	}
	return steps.Quoted(s.link.Path)
}

// seals tells whether a side that is here shares anything secret at this moment.
func (s *Session) seals(ctx context.Context, side steps.Side) bool {
	r := &resolver{s: s, ctx: tracked.WithLooks(ctx, s.looks), use: &usage{}, given: s.given(), secrets: s.secretAnswers()}
	env := r.env(side)
	for i := range s.guide.Steps {
		step := &s.guide.Steps[i]
		for j := range step.Facts {
			if f := &step.Facts[j]; f.Shared && f.Secret && f.On.Covers(side) && (step.When == nil || step.When(env)) {
				if _, err := r.fact(side, f.Name); !errors.As(err, new(*steps.AbsentError)) {
					return true
				}
			}
		}
	}
	return false
}

// lackingHanded is Absent for what a file of facts does not hold (yet).
func missingPeerFacts(why string, args ...any) error {
	return &steps.AbsentError{Why: fmt.Sprintf(why, args...), PeerFile: true}
}

// leaves tells whether a check that a run mends can't hold before the other side
// has gone on, and notes it where nothing that was put off has said so.
func (a *apart) leaves(ctx context.Context, c steps.Cell) bool {
	if a.side == "" {
		return false
	}
	if c.Side != a.side {
		return true // it is told by the file; no turn of this side changes that
	}
	check, _ := a.s.guide.Check(c.Check)
	mend, _ := a.s.guide.FixingAction(check, c.Side)
	why := a.behind(ctx, c, map[steps.Cell]bool{})
	if why != "" && !a.off[mend.Name] {
		a.note(c.Step, check.Title, why)
	}
	return why != "" || a.off[mend.Name]
}
