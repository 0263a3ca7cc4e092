package steps

import (
	"context"
	"fmt"
	"strconv"
)

// Adopter discovers an answer from an existing setup. See Question.Adopt.
type Adopter = func(context.Context, Env) (value any, from string, err error)

// Question is one question of a step. Its answer is stored in the link file under Key. A secret answer is kept only in
// memory.
type Question struct {
	Key   string // such as "network.port"
	Title string // such as "Port of the gateway"
	Help  string // one sentence about the purpose and what to enter
	Kind  AnswerKind
	On    Side     // the side whose facts Default and When receive as Own; default: Local
	Many  bool     // the answer is a list
	Opt   bool     // can be left empty
	Of    []Choice // the choices of a Pick
	// Default returns the value that applies without an answer. from is the displayed source of that value. Default reads
	// only facts and other answers. If Default is nil, the question has no default.
	Default func(Env) (value any, from string)
	// Adopt discovers the answer from an existing setup, whoever created it. It returns the value and where it was found.
	// Unlike Default, it runs only during an adoption. A nil value without an error means that nothing of that kind
	// exists. LeftEmpty means that it exists without such a value. An error explains why the answer can't be determined.
	// Neither the error nor the value is allowed to contain a secret.
	Adopt Adopter
	// Check is an additional rule after the rule of the kind. For a YAML answer, its error can begin with the number of
	// the wrong line, such as "line 3: …".
	Check func(value string) error
	// NotFromPeer is true if an answer in the other admin's facts file must not be used. Set it for answers that choose
	// an address to which a credential is sent, a program or unit to run, an image, a chart, or a namespace to offer. An
	// answer to a question about the reader's own side (On) is never used in any case. Unused answers are shown as
	// proposals.
	NotFromPeer bool
	// Proposes names a fact of the other side. It is shown as a proposal if the other admin's facts file has no answer.
	// It is "" if there is no such fact.
	Proposes string
	Secret   bool // kept only in memory; without a screen, it comes from --secret KEY=@file or KEY=-
	// By is the action that obtains the answer to a secret question from a person, such as by a sign-in. If By is "", the
	// user enters the answer.
	By string
	// ExportFile is the file in which the commands of an export keep the answer to a secret question, as a word of a
	// shell. It is "" if they keep it in none.
	ExportFile string
	When       func(Env) bool
}

// Choice is one of the answers to a Pick question.
type Choice struct{ Value, Title string }

// Fixed returns a Default that always returns value. from is the reason.
func Fixed(value any, from string) func(Env) (any, string) {
	return func(Env) (any, string) { return value, from }
}

// FromFact returns a Default that reads a fact of the question's own side. If the fact cannot be read, there is no
// default.
func FromFact(name, from string) func(Env) (any, string) {
	return func(e Env) (any, string) {
		v, err := e.Own.Value(name)
		if err != nil {
			return nil, ""
		}
		return v, from
	}
}

// Between returns a Check that requires a number from low to high, inclusive.
func Between(low, high int) func(string) error {
	return func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < low || n > high {
			return fmt.Errorf("%s is not between %d and %d", v, low, high)
		}
		return nil
	}
}

// Side returns the side whose Env the question's functions receive. If On is empty, it is Local.
func (q *Question) Side() Side {
	if q.On == "" {
		return Local
	}
	return q.On
}

// CountsFrom reports whether the reader of a facts file uses an answer from side's admin. It uses only answers to
// questions about that side. Otherwise that admin would decide what happens on the other side. An empty On means Local.
func (q *Question) CountsFrom(side Side) bool {
	return q.On == side || q.On == "" && side == Local && !q.NotFromPeer
}
