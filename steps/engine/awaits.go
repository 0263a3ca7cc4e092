package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carrick/cluster/tracked"
	"carrick/steps"
)

// AwaitsError reports that a run on one side has done everything that it can do alone. The other side is known only
// from a facts file, and its admin must continue.
type AwaitsError struct {
	Done int    // number of changes
	Own  string // the guide's name of the side that the run changed
	Peer string // the guide's name of the side that it awaits
	For  []Awaited
	Next []string // what to run next, in order: "the provider's admin: carrick apply LINK"
}

// Awaited is an action that was postponed, or a check that does not hold yet.
type Awaited struct {
	Step, Title string
	Until       string // what is missing from the other side, in words
}

func (e *AwaitsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "everything that the %s can do alone is done; the rest waits for the %s:", e.Own, e.Peer)
	for _, w := range e.For {
		fmt.Fprintf(&b, "\n  %s: %s", w.Title, w.Until)
	}
	b.WriteString("\nNext:")
	for _, line := range e.Next {
		b.WriteString("\n  " + line)
	}
	return b.String()
}

// apart is a run on one side while the other one is known only from a facts file, or not at all. It contains what was
// postponed because it depends on the other side.
type apart struct {
	s    *Session
	side steps.Side // the side worked on; "": both sides are available, and nothing is postponed
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

// putOff reports whether an action must wait for the other side, and records it.
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

// behind returns what a cell awaits from the other side, or "" if it holds or fails for a reason on this side.
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
		return fmt.Sprintf("requires on the %s: %s (%s)", a.s.guide.Sides[c.Side].Name, check.Title, c.Check)
	case r.PeerFile:
		return r.Found
	}
	for _, need := range a.s.guide.Needs(c) {
		if why := a.behind(ctx, need, seen); why != "" {
			return why
		}
	}
	if mend, _ := a.s.guide.FixingAction(check, c.Side); mend != nil && a.off[mend.Name] {
		return "depends on a step above"
	}
	return ""
}

// over returns the result of such a run: an AwaitsError if something is awaited, else nil.
func (a *apart) over(ctx context.Context, done int) error {
	if len(a.told) == 0 {
		return nil
	}
	own, peer := a.s.guide.Sides[a.side].Name, a.s.guide.Sides[a.side.Peer()].Name
	return &AwaitsError{Done: done, Own: own, Peer: peer, For: a.told, Next: a.s.NextTurn(ctx, a.side)}
}

// NextTurn returns what to run next, and who runs it, if a side has done its part and the other one is known from a
// facts file.
func (s *Session) NextTurn(ctx context.Context, side steps.Side) []string {
	own, peer, link := s.guide.Sides[side], s.guide.Sides[side.Peer()], s.linkWord()
	return []string{
		fmt.Sprintf("you, then give the file to the %s's admin: %s", peer.Name, s.HandoverCommand(ctx, side)),
		fmt.Sprintf(
			"the %s's admin, with your file in their link file: carrick apply LINK --side %s, then carrick handover LINK "+
				"--side %s (LINK is their link file)",
			peer.Name, peer.Flag(), peer.Flag(),
		),
		fmt.Sprintf("you, after you replaced the old facts file with theirs: carrick apply %s --side %s", link, own.Flag()),
	}
}

// HandoverCommand returns the command by which the admin of a side writes its facts file.
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

// seals reports whether an available side currently shares a secret.
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

// missingPeerFacts returns an AbsentError for what a facts file does not contain (yet).
func missingPeerFacts(why string, args ...any) error {
	return &steps.AbsentError{Why: fmt.Sprintf(why, args...), PeerFile: true}
}

// leaves reports whether a check that a run fixes can't hold before the other side has continued. It records that
// unless a postponed action already has.
func (a *apart) leaves(ctx context.Context, c steps.Cell) bool {
	if a.side == "" {
		return false
	}
	if c.Side != a.side {
		return true // its verdict is from the file; nothing on this side changes that
	}
	check, _ := a.s.guide.Check(c.Check)
	mend, _ := a.s.guide.FixingAction(check, c.Side)
	why := a.behind(ctx, c, map[steps.Cell]bool{})
	if why != "" && !a.off[mend.Name] {
		a.note(c.Step, check.Title, why)
	}
	return why != "" || a.off[mend.Name]
}
