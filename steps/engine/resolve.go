package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
	"carrick/cluster/web"
	"carrick/steps"
)

func (s *Session) env(ctx context.Context, side steps.Side, use *usage) steps.Env {
	return s.resolver(ctx, use).env(side)
}

// probeEnv is like env, but a fact keeps the same value during the whole probe.
func (s *Session) probeEnv(ctx context.Context, side steps.Side, use *usage) steps.Env {
	r := s.resolver(ctx, use)
	r.known = &learnt{all: map[learntKey]learntFact{}}
	return r.env(side)
}

// adoptEnv is like env, but both sides' facts can be used. An adoption inspects both clusters itself and uses no facts
// files.
func (s *Session) adoptEnv(ctx context.Context, side steps.Side, use *usage) steps.Env {
	r := s.resolver(ctx, use)
	r.adopting = true
	return r.env(side)
}

func (s *Session) resolver(ctx context.Context, use *usage) *resolver {
	s.mu.Lock()
	defer s.mu.Unlock()
	use.answered = s.answered
	return &resolver{s: s, ctx: ctx, use: use, given: maps.Clone(s.answers), secrets: maps.Clone(s.secrets)}
}

// resolver provides facts and answers to one probe. Each fact and each default has its own resolver, one level deeper,
// so that several can be read concurrently.
type resolver struct {
	s       *Session
	ctx     context.Context
	use     *usage
	given   steps.Given
	secrets map[string]masked.Value
	depth   int
	// defaulting is true while a default is computed. A fact that can't be read then does not count as absent.
	defaulting bool
	// secret is true while a secret value is computed and a facts file has an unconfirmed signer. That file is then not
	// used.
	secret bool
	// adopting allows a side to use all facts of the other side, shared or not.
	adopting bool
	known    *learnt // nil if each use must read the fact again, as when waiting for a change
}

// learnt caches the facts that one probe has read, so that each fact stays the same during the probe.
type learnt struct {
	mu  sync.Mutex
	all map[learntKey]learntFact
}

type learntKey struct {
	side       steps.Side
	name       string
	defaulting bool // part of the key, because it changes what usage records
	secret     bool
}

type learntFact struct {
	value any
	err   error
}

// learn reads a fact once. Concurrent callers wait for the same read.
func (l *learnt) learn(k learntKey, learn func() (any, error)) (any, error) {
	if l == nil {
		return learn()
	}
	l.mu.Lock()
	f, known := l.all[k]
	l.mu.Unlock()
	if known {
		return f.value, f.err
	}
	v, err := learn()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[k] = learntFact{v, err}
	return v, err
}

func (r *resolver) deeper() *resolver {
	next := *r
	next.depth++
	return &next
}

func (r *resolver) env(side steps.Side) steps.Env {
	end := r.s.ends[side]
	e := steps.Env{
		Side: side, Cluster: end.Cluster, Host: end.Host, Link: r.s.link.Name(), Assets: r.s.assets, Attended: r.s.attended,
		Own: r.facts(side), Peer: r.shared(side.Peer()), Answers: steps.Answers{Lookup: r.answer},
		Runtime: steps.Runtime{
			Guide: r.s.guide, LinkPath: r.s.link.Path, Sides: map[steps.Side]steps.SideInfo{}, Cache: &sync.Map{},
			Sound: r.use.sound,
			API:   func() (*web.Client, error) { return r.api(side) }, Keep: r.s.keep, Given: r.given.Has,
			Emptied: r.given.Empties,
			Watched: r.known != nil,
		},
	}
	for _, sd := range steps.Sides {
		info := steps.SideInfo{Role: r.s.guide.Sides[sd].Name, Name: r.s.ends[sd].Name, Config: r.s.ends[sd].Config}
		if h := r.s.ends[sd].PeerFile; h != nil {
			info.Unconfirmed = h.unsigned
		}
		e.Runtime.Sides[sd] = info
	}
	return e
}

// api returns the client of the setup's API. It returns the same client while the address is unchanged.
func (r *resolver) api(side steps.Side) (*web.Client, error) {
	if r.s.guide.API == nil {
		return nil, steps.Absent("the guide has no API")
	}
	r = r.deeper()
	r.secret = r.s.unsure() // a token is sent to this address
	e := r.env(side)
	e.Runtime.API = nil // the guide's API function must not use the API itself
	at, err := r.s.guide.API(r.ctx, e)
	if err != nil {
		return nil, err
	}
	return r.s.web(at)
}

func (r *resolver) facts(side steps.Side) steps.Facts {
	return steps.Facts{Lookup: func(name string) (any, error) { return r.fact(side, name) }}
}

// shared returns the facts of a side that the other side can use.
func (r *resolver) shared(side steps.Side) steps.Facts {
	return steps.Facts{Lookup: func(name string) (any, error) {
		if f := r.s.guide.Fact(name, side); f != nil && !f.Shared && !r.adopting {
			return nil, fmt.Errorf("the guide does not share %s with the other side", f.DisplayName())
		}
		return r.fact(side, name)
	}}
}

// deepest limits how many facts and defaults can depend on each other in a row.
const deepest = 16

func (r *resolver) fact(side steps.Side, name string) (any, error) {
	f := r.s.guide.Fact(name, side)
	if f == nil {
		return nil, fmt.Errorf("the guide has no fact %q on the %s", name, side)
	}
	secret := r.secret || f.Secret && r.s.unsure()
	if h := r.s.ends[side].PeerFile; h != nil {
		if secret {
			return nil, h.unconfirmed()
		}
		return h.fact(r.ctx, f)
	}
	if r.s.ends[side].absent() {
		return nil, missingPeerFacts("%s is not known: %s", f.DisplayName(), r.s.whyAbsent(side))
	}
	if r.depth == deepest {
		return nil, fmt.Errorf("fact %q depends on itself", name)
	}
	v, err := r.known.learn(learntKey{side, name, r.defaulting, secret}, func() (any, error) {
		next := r.deeper()
		next.secret = secret
		return f.Learn(r.ctx, next.env(side))
	})
	if absent := (*steps.AbsentError)(nil); err != nil && r.defaulting && !errors.As(err, &absent) {
		r.use.fail(err)
	}
	return v, err
}

// answer returns the given answer, or else the default. If there is neither, it records the question as missing.
func (r *resolver) answer(key string) any {
	q, _ := r.s.guide.Question(key)
	if q == nil {
		panic(fmt.Sprintf("the guide has no question %q", key))
	}
	v, _ := r.resolve(q)
	if v == nil && !q.Opt {
		r.use.miss(*q)
	}
	return v
}

func (r *resolver) resolve(q *steps.Question) (v any, from string) {
	if q.Secret {
		if m, ok := r.secrets[q.Key]; ok {
			return m, "given"
		}
		return nil, ""
	}
	if v, ok := r.given[q.Key]; ok && v == steps.LeftEmpty {
		return nil, "given"
	} else if ok && v != nil {
		return v, "given"
	}
	for _, side := range steps.Sides {
		if h := r.s.ends[side].PeerFile; h != nil && q.CountsFrom(side) && !r.secret {
			if v, from := h.answer(r.ctx, q); v != nil {
				return v, from
			}
		}
	}
	if q.Default == nil || r.depth == deepest {
		return nil, ""
	}
	next := r.deeper()
	next.defaulting = true
	return q.Default(next.env(q.Side()))
}

// proposed returns another admin's proposal for an answer and the facts file that contains it. Such an answer is not
// used automatically. If the proposal equals the current value, proposed returns "".
func (s *Session) proposed(ctx context.Context, q *steps.Question, holds any) string {
	for _, side := range steps.Sides {
		h := s.ends[side].PeerFile
		if h == nil || q.CountsFrom(side) {
			continue
		}
		v, from := h.answer(ctx, q)
		if v == nil && q.Proposes != "" {
			v, from = h.proposal(ctx, q)
		}
		if v != nil && (holds == nil || q.Show(v) != q.Show(holds)) {
			return from + " proposes " + clean.Text(q.Show(v))
		}
	}
	return ""
}

// Answered is a current answer with its source.
type Answered struct {
	Question *steps.Question
	Value    any
	From     string // "given", or the source of the default
	Proposed string // what another admin's facts file proposes, and which file; "" if nothing
	Asked    bool   // false if the question is not applicable because its When is false
	Err      error  // why the default could not be read
}

// Answers returns the current answers of a step, in the order of its questions. It might read defaults from a cluster.
func (s *Session) Answers(ctx context.Context, step *steps.Step) []Answered {
	ctx, cancel := context.WithTimeout(tracked.WithLooks(ctx, s.looks), s.checkTimeout())
	defer cancel()
	r := &resolver{s: s, ctx: ctx, given: s.given(), secrets: s.secretAnswers()}
	var out []Answered
	for i := range step.Ask {
		q := &step.Ask[i]
		r.use = &usage{}
		base := r.env(steps.Local)
		a := Answered{Question: q, Asked: (step.When == nil || step.When(base)) && (q.When == nil || q.When(r.env(q.Side())))}
		a.Value, a.From = r.resolve(q)
		a.Err = r.use.failed
		a.Proposed = s.proposed(ctx, q, a.Value)
		out = append(out, a)
	}
	return out
}

// Missing returns the applicable questions that have neither an answer nor a default. It covers the named steps, or all
// steps if there are no names. A question whose default could not be read is not missing, because any use of the answer
// reports the error.
func (s *Session) Missing(ctx context.Context, names ...string) []steps.Question {
	var out []steps.Question
	for _, step := range s.stepsNamed(names) {
		for _, a := range s.Answers(ctx, step) {
			if a.Asked && a.Value == nil && a.Err == nil && !a.Question.Opt {
				out = append(out, *a.Question)
			}
		}
	}
	return out
}

// WhatIsMissing returns the error for missing answers. It includes the proposals in another admin's facts file.
func (s *Session) WhatIsMissing(ctx context.Context, questions []steps.Question) *steps.MissingError {
	out := &steps.MissingError{Questions: questions}
	for i := range questions {
		if p := s.proposed(ctx, &questions[i], nil); p != "" {
			out.Proposed = append(out.Proposed, questions[i].Key+" "+p)
		}
	}
	return out
}

// Answer sets an answer. If v is nil, it removes the answer, so that the default applies. Probes that used the old
// answer run again. Save writes the answer to the link file.
func (s *Session) Answer(key string, v any) error {
	q, _ := s.guide.Question(key)
	if q == nil {
		return fmt.Errorf("the guide has no question %q", key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m, secret := v.(masked.Value); {
	case secret:
		s.secrets[key] = m
	case q.Secret && v != nil:
		return fmt.Errorf("the answer to %q is secret and must be masked", key)
	case v == nil:
		delete(s.answers, key)
		delete(s.secrets, key)
		delete(s.link.Answers, key)
	default:
		s.answers[key] = v
		s.link.Answers[key] = v
	}
	s.wake()
	return nil
}

// wake makes all probes that used an answer run again. The caller must hold s.mu.
func (s *Session) wake() {
	close(s.answered)
	s.answered = make(chan struct{})
	clear(s.passed)
}

func (s *Session) keep(key string, v masked.Value) error {
	if q, _ := s.guide.Question(key); q == nil || !q.Secret {
		return fmt.Errorf("the guide has no secret question %q", key)
	}
	return s.Answer(key, v)
}

// web returns the API client for an address. It creates one client per address.
func (s *Session) web(at web.Address) (*web.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.webs[at]; w != nil {
		return w, nil
	}
	w, err := at.Open()
	if err == nil {
		s.webs[at] = w
	}
	return w, err
}

// Save writes the link file with the current answers.
func (s *Session) Save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.Save()
}

func (s *Session) given() steps.Given {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.answers)
}

func (s *Session) secretAnswers() map[string]masked.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.secrets)
}

func (s *Session) stepsNamed(names []string) []*steps.Step {
	var out []*steps.Step
	for i := range s.guide.Steps {
		step := &s.guide.Steps[i]
		if len(names) == 0 {
			out = append(out, step)
			continue
		}
		for _, n := range names {
			if n == step.Name {
				out = append(out, step)
			}
		}
	}
	return out
}
