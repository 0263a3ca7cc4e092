package steps

import (
	"context"
	"fmt"
	"strconv"
)

// Adopter discovers an answer from an existing set-up: see Question.Adopt.
type Adopter = func(context.Context, Env) (value any, from string, err error)

// Question is one question of a step. Its answer is stored in the link file under Key, or only in memory if it is
// secret.
type Question struct {
	Key   string // "network.port"
	Title string // "Port of the gateway"
	Help  string // one sentence: what it is for and what to enter
	Kind  AnswerKind
	On    Side     // the side whose facts Default and When see as Own; "": Local
	Many  bool     // a list of answers of that kind
	Opt   bool     // may be left empty
	Of    []Choice // the choices of a Pick
	// Default returns the value that applies without an answer, and where that value comes from, which is shown. It reads
	// only facts and other answers. nil: no default.
	Default func(Env) (value any, from string)
	// Adopt discovers the answer from an existing set-up, whoever created it, and says where it was found. Unlike Default,
	// it runs only while a set-up is adopted. nil without an error means that nothing of that kind exists. LeftEmpty means
	// that it exists without such a value. An error says why the answer can't be determined. Neither the error nor the
	// value may contain a secret.
	Adopt Adopter
	// Check is an additional rule beyond that of the kind. Its error about a YAML answer may begin with the line that is
	// wrong: "line 3: …".
	Check func(value string) error
	// NotFromPeer means that an answer in the other admin's facts file is not used. Set it for answers that choose an
	// address to which a credential is sent, a program or unit to run, an image, a chart, or a namespace to offer.
	// Independently of it, an answer to a question about the reader's own side (On) is never used. Such answers are
	// shown as proposals.
	NotFromPeer bool
	// Proposes is the other side's fact that is shown as a proposal if its admin's facts file has no answer; "": none.
	Proposes string
	Secret   bool // kept only in memory; without a screen, it comes from --secret KEY=@file or KEY=-
	// By is the action that obtains the answer to a secret question from a person, such as by a sign-in; "": the answer is
	// entered.
	By   string
	When func(Env) bool
}

// Choice is one of the answers to a Pick question.
type Choice struct{ Value, Title string }

// Fixed returns a Default that is always value; from says why.
func Fixed(value any, from string) func(Env) (any, string) {
	return func(Env) (any, string) { return value, from }
}

// FromFact returns a Default that reads a fact of the question's own side. It has no value if the fact cannot be read.
func FromFact(name, from string) func(Env) (any, string) {
	return func(e Env) (any, string) {
		v, err := e.Own.Value(name)
		if err != nil {
			return nil, ""
		}
		return v, from
	}
}

// Between returns a Check that requires a number of at least low and at most high.
func Between(low, high int) func(string) error {
	return func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < low || n > high {
			return fmt.Errorf("%s is not between %d and %d", v, low, high)
		}
		return nil
	}
}

// Side returns the side whose Env the default and the condition see: Local if On is empty.
func (q *Question) Side() Side {
	if q.On == "" {
		return Local
	}
	return q.On
}

// CountsFrom reports whether the reader of a facts file uses an answer from side's admin: only answers to questions of
// that side, where an empty On means Local. Otherwise that admin would decide what happens on the other side.
func (q *Question) CountsFrom(side Side) bool {
	return q.On == side || q.On == "" && side == Local && !q.NotFromPeer
}
