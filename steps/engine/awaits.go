package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carrick/cluster/tracked"
	"carrick/steps"
)

// AwaitsError is returned if a run on one side has done everything that it can do alone. The other side is known only
// from a facts file, and its admin must continue.
type AwaitsError struct {
	Done int    // number of changes
	Own  string // the guide's name for the side that the run changed
	Peer string // the guide's name for the side that must continue
	For  []Awaited
	Next []string // what to run next, in order, such as "the provider's admin: carrick apply LINK"
}

// Awaited is a postponed action, or a check that does not pass yet.
type Awaited struct {
	Step, Title string
	Until       string // what the other side must provide
}

func (e *AwaitsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "all changes that need only the %s are done; the others wait for the %s:", e.Own, e.Peer)
	for _, w := range e.For {
		fmt.Fprintf(&b, "\n  %s: %s", w.Title, w.Until)
	}
	b.WriteString("\nNext:")
	for _, line := range e.Next {
		b.WriteString("\n  " + line)
	}
	return b.String()
}

// apart is a run on one side while the other side is unknown, or known only from a facts file. It records what was
// postponed because it depends on the other side.
type apart struct {
	s    *Session
	side steps.Side // the side that the run changes; if "", both sides are available and nothing is postponed
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

// putOff reports whether an action must wait for the other side. If so, it records the action.
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

// behind returns what a cell awaits from the other side. It returns "" if the cell passes, or fails because of this
// side.
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
		return fmt.Sprintf("requires a check on the %s: %s (%s)", a.s.guide.Sides[c.Side].Name, check.Title, c.Check)
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

// over returns an AwaitsError if something is awaited, and nil otherwise.
func (a *apart) over(ctx context.Context, done int) error {
	if len(a.told) == 0 {
		return nil
	}
	own, peer := a.s.guide.Sides[a.side].Name, a.s.guide.Sides[a.side.Peer()].Name
	return &AwaitsError{Done: done, Own: own, Peer: peer, For: a.told, Next: a.s.NextTurn(ctx, a.side)}
}

// NextTurn returns what both admins do next, in order. It applies once a side has done its part and the other side is
// known only from a facts file.
func (s *Session) NextTurn(ctx context.Context, side steps.Side) []string {
	own, peer, link := s.guide.Sides[side], s.guide.Sides[side.Peer()], s.linkWord()
	return []string{
		fmt.Sprintf("write your facts file and give it to the %s's admin: %s", peer.Name, s.HandoverCommand(ctx, side)),
		fmt.Sprintf(
			"the %s's admin adds your file to their link file and runs: carrick apply LINK --side %s, then carrick handover "+
				"LINK --side %s (LINK is their link file)",
			peer.Name, peer.Flag(), peer.Flag(),
		),
		fmt.Sprintf("replace the old facts file with theirs, then run: carrick apply %s --side %s", link, own.Flag()),
	}
}

// HandoverCommand returns the command with which the admin of a side writes the facts file.
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

// seals reports whether the facts file of an available side would contain a secret.
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

// missingPeerFacts returns an AbsentError for data that a facts file does not contain.
func missingPeerFacts(why string, args ...any) error {
	return &steps.AbsentError{Why: fmt.Sprintf(why, args...), PeerFile: true}
}

// leaves reports whether a check that this run should fix can't pass before the other side has continued. If so, it
// records the check, unless a postponed action already covers the check.
func (a *apart) leaves(ctx context.Context, c steps.Cell) bool {
	if a.side == "" {
		return false
	}
	if c.Side != a.side {
		return true // the verdict is from the file, and nothing on this side changes it
	}
	check, _ := a.s.guide.Check(c.Check)
	mend, _ := a.s.guide.FixingAction(check, c.Side)
	why := a.behind(ctx, c, map[steps.Cell]bool{})
	if why != "" && !a.off[mend.Name] {
		a.note(c.Step, check.Title, why)
	}
	return why != "" || a.off[mend.Name]
}
