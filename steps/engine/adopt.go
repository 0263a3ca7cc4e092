package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/tracked"
	"carrick/steps"
)

// Adopted is what is known of one question once a set-up that stands already
// has been looked at.
type Adopted struct {
	Question *steps.Question
	Value    any    // nil: nothing is known
	From     string // where it was seen, or where the default is from
	How      AdoptedHow
	Written  bool   // it differs from the default: it belongs into the link file
	Why      string // why it could not be found out; "": it could, or nobody tried
}

// AdoptedHow says how an answer was come by.
type AdoptedHow int

// How answers are come by.
const (
	Unanswered AdoptedHow = iota // there is none
	ByUser                       // given
	ByFinding                    // seen in what stands
	ByDefault                    // nothing was seen, or nobody looked: the default stands
)

// ByHand tells whether somebody has to look at this answer: it is missing, or
// what it would be in the set-up that stands could not be found out.
func (a Adopted) ByHand() bool {
	return a.How != ByUser && (a.Why != "" || (a.How == Unanswered && !a.Question.Opt))
}

// adoptRounds bounds how often all questions are gone through: answers may lean
// on answers.
const adoptRounds = 6

// adoptPatience is how long one question may take.
const adoptTimeout = 20 * time.Second

// Adopt finds out the answers of a set-up that stands already, and gives them
// to the session: only those that differ from their defaults. Answers that were
// given stay. It reads and changes nothing.
func (s *Session) Adopt(ctx context.Context) ([]Adopted, error) {
	given := s.given()
	found := map[string]Adopted{}
	for range adoptRounds {
		moved := false
		for _, q := range s.adoptable(given) {
			a := s.adoptOne(ctx, q)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			moved = moved || !sameAnswer(found[q.Key].Value, a.Value)
			found[q.Key] = a
			if err := s.Answer(q.Key, a.Value); err != nil {
				return nil, err
			}
		}
		if !moved {
			break
		}
	}
	return s.settleAdopted(ctx, given, found)
}

// adoptable are the questions that can be found out and are not answered.
func (s *Session) adoptable(given steps.Given) []*steps.Question {
	var out []*steps.Question
	for i := range s.guide.Steps {
		for j := range s.guide.Steps[i].Ask {
			q := &s.guide.Steps[i].Ask[j]
			if _, is := given[q.Key]; !is && q.Adopt != nil && !q.Secret {
				out = append(out, q)
			}
		}
	}
	return out
}

// adoptOne asks one question of what stands.
func (s *Session) adoptOne(ctx context.Context, q *steps.Question) Adopted {
	a := Adopted{Question: q}
	if s.ends[q.Side()].absent() {
		a.Why = s.whyAbsent(q.Side())
		return a
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(tracked.WithLooks(ctx, s.looks), adoptTimeout)
	defer cancel()
	use := &usage{}
	env := s.adoptEnv(ctx, q.Side(), use)
	if q.When != nil && !q.When(env) {
		return a
	}
	v, from, err := q.Adopt(ctx, env)
	if err == nil {
		err = use.sound()
	}
	if err == nil && v != nil {
		v, err = s.accepted(q, v)
	}
	absent := (*steps.AbsentError)(nil)
	switch {
	case errors.As(err, &absent):
	case err != nil && ctx.Err() != nil && parent.Err() == nil:
		a.Why = "no answer within " + adoptTimeout.String()
	case err != nil:
		a.Why = clean.Text(failure.Explain(err))
	case v != nil:
		a.Value, a.From, a.How = v, clean.Text(from), ByFinding
	}
	return a
}

// accepted is a value as a link file would hold it; a file is beside that.
func (s *Session) accepted(q *steps.Question, v any) (any, error) {
	if path, is := v.(string); is && q.Kind == steps.Path && path != steps.LeftEmpty {
		full, err := filepath.Abs(s.link.File(path))
		if err != nil {
			return nil, err
		}
		v = full
	}
	got, err := q.Accept(v)
	if err != nil {
		return nil, fmt.Errorf("what stands there is no answer that can be taken: %w", err)
	}
	return got, nil
}

// settleAdopted takes back what the defaults say by themselves, and lists what
// is known of every question that applies, in the order of the guide.
func (s *Session) settleAdopted(ctx context.Context, given steps.Given, found map[string]Adopted) ([]Adopted, error) {
	var out []Adopted
	for i := range s.guide.Steps {
		for _, now := range s.Answers(ctx, &s.guide.Steps[i]) {
			q := now.Question
			if !now.Asked || q.Secret {
				if _, mine := found[q.Key]; mine {
					if err := s.Answer(q.Key, nil); err != nil {
						return nil, err
					}
				}
				continue
			}
			a, err := s.settleOne(ctx, now, given, found[q.Key])
			if err != nil {
				return nil, err
			}
			out = append(out, a)
		}
	}
	return out, ctx.Err()
}

func (s *Session) settleOne(ctx context.Context, now Answered, given steps.Given, a Adopted) (Adopted, error) {
	q := now.Question
	a.Question = q
	if v, is := given[q.Key]; is {
		return Adopted{Question: q, Value: v, From: "given", How: ByUser, Written: true}, nil
	}
	usual, from, err := s.defaultOf(ctx, q)
	switch {
	case a.How == ByFinding && err == nil && sameAnswer(usual, a.Value):
		return a, s.Answer(q.Key, nil) // the default says so by itself
	case a.How == ByFinding:
		a.Written = true
	case err != nil:
		a.Why = clean.Text(failure.Explain(err))
	case usual != nil:
		a.Value, a.From, a.How = usual, from, ByDefault
	}
	return a, nil
}

// defaultOf is what stands where a question is not answered.
func (s *Session) defaultOf(ctx context.Context, q *steps.Question) (any, string, error) {
	ctx, cancel := context.WithTimeout(tracked.WithLooks(ctx, s.looks), s.settleTimeout())
	defer cancel()
	given := s.given()
	delete(given, q.Key)
	r := &resolver{s: s, ctx: ctx, use: &usage{}, given: given, secrets: s.secretAnswers()}
	v, from := r.resolve(q)
	return v, from, r.use.sound()
}

// sameAnswer compares two answers as they would stand in a link file. The order
// of a list does not count, and one that was left empty is none.
func sameAnswer(a, b any) bool {
	_, many := a.([]string)
	if _, other := b.([]string); many || other {
		x, y := slices.Clone(steps.ListOf(a)), slices.Clone(steps.ListOf(b))
		slices.Sort(x)
		slices.Sort(y)
		return slices.Equal(x, y)
	}
	return plainAnswer(a) == plainAnswer(b)
}

func plainAnswer(v any) string {
	if v == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(v))
}
