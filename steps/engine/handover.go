package engine

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/facts"
)

// Handover is the content of a facts file for the admin of the other side.
type Handover struct {
	File    *facts.File
	Secrets map[string]masked.Value // not yet in the file; they must be sealed first
}

// Handover reads the shared facts, answers and verdicts of side that the other side needs. The facts file is valid for
// the duration good.
func (s *Session) Handover(ctx context.Context, side steps.Side, good time.Duration) (*Handover, error) {
	if s.ends[side].absent() {
		return nil, fmt.Errorf("the %s is not available: %s", s.guide.Sides[side].Name, s.whyAbsent(side))
	}
	ctx = tracked.WithLooks(ctx, s.looks)
	now := time.Now().UTC().Truncate(time.Second)
	f := &facts.File{
		APIVersion: facts.Version, Kind: facts.Kind, Guide: s.guide.Name, Link: s.link.Name(),
		Side: string(side), Role: s.guide.Sides[side].Name, Context: clean.Text(s.ends[side].Name), From: userName(),
		Taken: now, Until: now.Add(good),
		Answers: map[string]any{}, Facts: map[string]any{}, Absent: map[string]string{}, Unread: map[string]string{},
		Checks: map[string]facts.Told{},
	}
	if c := s.ends[side].Cluster; c != nil {
		uid, err := c.UID(ctx)
		if err != nil {
			return nil, fmt.Errorf("the %s does not answer: %s", f.Role, failure.Explain(err))
		}
		f.Cluster = uid
	}
	for key, v := range s.given() {
		if q, _ := s.guide.Question(key); q != nil && !q.Secret {
			f.Answers[key] = v
		}
	}
	h := &Handover{f, map[string]masked.Value{}}
	s.learnShared(ctx, side, h)
	board, _ := s.Look(ctx, s.Cells(Selection{Side: side}))
	for _, c := range s.Cells(Selection{Side: side}) {
		if v := board.Verdict(c); v.Found != steps.NotAsked {
			f.Checks[c.Check] = facts.Told{Status: v.Status.String(), Found: v.Found}
		}
	}
	return h, ctx.Err()
}

func (s *Session) learnShared(ctx context.Context, side steps.Side, h *Handover) {
	r := &resolver{s: s, ctx: ctx, use: &usage{}, given: s.given(), secrets: s.secretAnswers()}
	env := r.env(side)
	for i := range s.guide.Steps {
		step := &s.guide.Steps[i]
		for j := range step.Facts {
			fact := &step.Facts[j]
			if !fact.Shared || fact.Now || !fact.On.Covers(side) {
				continue
			}
			v, err := r.fact(side, fact.Name)
			if step.When != nil && !step.When(env) {
				err = steps.Absent(steps.NotAsked)
			}
			absent := (*steps.AbsentError)(nil)
			switch m, secret := v.(masked.Value); {
			case errors.As(err, &absent):
				h.File.Absent[fact.Name] = clean.Text(absent.Error())
			case err != nil:
				h.File.Unread[fact.Name] = clean.Text(failure.Explain(err))
			case fact.Secret && secret:
				h.Secrets[fact.Name] = m
			case fact.Secret:
				h.File.Unread[fact.Name] = "it is a secret, but was not masked"
			case !plainValue(v):
				h.File.Unread[fact.Name] = "it has a type that cannot be written to a file"
			default:
				h.File.Facts[fact.Name] = v
			}
		}
	}
}

// plainValue reports whether a value survives encoding and decoding unchanged.
func plainValue(v any) bool {
	switch v := v.(type) {
	case string, bool, int, int64, float64, []string:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(x any) bool { return !plainValue(x) })
	case map[string]any:
		for _, x := range v {
			if !plainValue(x) {
				return false
			}
		}
		return true
	}
	return false
}

// Signed returns the content of the signed file. It seals the secrets for the given recipients. If there are no
// recipients, it omits the secrets.
func (h *Handover) Signed(key *facts.Key, to facts.Recipients) ([]byte, error) {
	if len(h.Secrets) > 0 && len(to.Names) > 0 {
		open := map[string]string{}
		for name, m := range h.Secrets {
			open[name] = m.Reveal()
		}
		if err := h.File.Seal(open, to, key); err != nil {
			return nil, err
		}
	}
	return h.File.Encode(key)
}

// userName returns the user who runs carrick, or "" if unknown. It is information for the reader of the file.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return clean.Text(u.Username)
}

func listed(names []string) string { return strings.Join(names, ", ") }
