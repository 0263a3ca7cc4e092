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

// Adopted is the answer to one question, as discovered from an existing setup.
type Adopted struct {
	Question *steps.Question
	Value    any    // nil if unknown
	From     string // where the value was found, or the source of the default
	How      AdoptedHow
	Written  bool   // the answer differs from the default and is written into the link file
	Why      string // why the value could not be discovered; "" if it was discovered or carrick did not try
}

// AdoptedHow is the source of an answer.
type AdoptedHow int

const (
	Unanswered AdoptedHow = iota // there is no answer
	ByUser                       // the user gave the answer
	ByFinding                    // found in the existing setup
	ByDefault                    // not found, so the default applies
)

// ByHand reports whether the user must check this answer. Either the answer is missing, or its value in the existing
// setup could not be discovered.
func (a Adopted) ByHand() bool {
	return a.How != ByUser && (a.Why != "" || (a.How == Unanswered && !a.Question.Opt))
}

// adoptRounds is the maximum number of passes over all questions. More than one is needed because answers can depend on
// other answers.
const adoptRounds = 6

// adoptTimeout applies to each question.
const adoptTimeout = 20 * time.Second

// Adopt discovers the answers of an existing setup. It gives the session those answers that differ from their defaults
// and keeps the given answers. It changes nothing in the setup.
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

// accepted converts a discovered value to an answer of a link file. It makes paths absolute.
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
		return nil, fmt.Errorf("the discovered value is not a valid answer: %w", err)
	}
	return got, nil
}

// settleAdopted drops the answers that equal their defaults. It returns every applicable question in the order of the
// guide.
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
		return a, s.Answer(q.Key, nil) // the default has the same value
	case a.How == ByFinding:
		a.Written = true
	case err != nil:
		a.Why = clean.Text(failure.Explain(err))
	case usual != nil:
		a.Value, a.From, a.How = usual, from, ByDefault
	}
	return a, nil
}

func (s *Session) defaultOf(ctx context.Context, q *steps.Question) (any, string, error) {
	ctx, cancel := context.WithTimeout(tracked.WithLooks(ctx, s.looks), s.checkTimeout())
	defer cancel()
	given := s.given()
	delete(given, q.Key)
	r := &resolver{s: s, ctx: ctx, use: &usage{}, given: given, secrets: s.secretAnswers()}
	v, from := r.resolve(q)
	return v, from, r.use.sound()
}

// sameAnswer reports whether two answers of a link file are equal. The order of a list does not matter. An answer that
// was left empty equals no answer.
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
