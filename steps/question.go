package steps

import (
	"context"
	"fmt"
	"strconv"
)

// Adopter finds an answer in an existing set-up: see Question.Adopt.
type Adopter = func(context.Context, Env) (value any, from string, err error)

// Question is what a step asks. Its answer lives in the link file under Key;
// a secret one only in memory.
type Question struct {
	Key   string // "network.port"
	Title string // "Port of the gateway"
	Help  string // one sentence: what it is for and what a good answer is
	Kind  AnswerKind
	On    Side     // whose facts are Own in Default and When; "": Local
	Many  bool     // a list of answers of that kind
	Opt   bool     // may stay empty
	Of    []Choice // what a Choice chooses from
	// Default gives the value that stands where nothing is answered and from
	// where it was taken, which is shown. It reads facts and other answers,
	// nothing else. nil: there is none.
	Default func(Env) (value any, from string)
	// Adopt finds in a set-up that stands already, whoever made it, what the
	// answer would have been, and says where that was seen. Unlike a Default it
	// is asked only where a set-up is taken on. nil without an error: nothing of
	// that kind stands. LeftEmpty: it stands without one. An error says why it
	// can't be told; no error and no value may hold a secret.
	Adopt Adopter
	// Check is a rule of its own beyond the kind's. Of a YAML answer its error
	// may begin with the line that is wrong: "line 3: …".
	Check func(value string) error
	// NotFromPeer means that an answer in another admin's facts file does not count: it would choose an address that gets
	// a credential, a program or a unit that is run, an image, a chart, or a namespace that is offered. An answer to a
	// question that is asked of the reader's side (On) never counts; both are shown as proposals.
	NotFromPeer bool
	// Proposes is a fact of the other side that is shown as a proposal where its admin's facts file answers nothing;
	// "": none.
	Proposes string
	Secret   bool // in memory only; headless by --secret KEY=@file or KEY=-
	// By is the action that gets the answer of a secret question from a person,
	// such as a sign-in; "": it is given.
	By   string
	When func(Env) bool
}

// Choice is one of the answers to a Choice question.
type Choice struct{ Value, Title string }

// Fixed is a Default that is always the same; from says why it is that.
func Fixed(value any, from string) func(Env) (any, string) {
	return func(Env) (any, string) { return value, from }
}

// FromFact is a Default taken from a fact of the question's own side; nothing
// where that fact cannot be learnt.
func FromFact(name, from string) func(Env) (any, string) {
	return func(e Env) (any, string) {
		v, err := e.Own.Value(name)
		if err != nil {
			return nil, ""
		}
		return v, from
	}
}

// Between is a Check of a Number.
func Between(low, high int) func(string) error {
	return func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < low || n > high {
			return fmt.Errorf("%s is not from %d to %d", v, low, high)
		}
		return nil
	}
}

// Side is the side whose Env a default and a condition see: the local one where On names none.
func (q *Question) Side() Side {
	if q.On == "" {
		return Local
	}
	return q.On
}

// CountsFrom reports whether an answer in the facts file of a side's admin counts for whoever reads it: that side's own
// questions, and those of no side where it is the local one. Else its admin would choose what is done on the other
// side.
func (q *Question) CountsFrom(side Side) bool {
	return q.On == side || q.On == "" && side == Local && !q.NotFromPeer
}
