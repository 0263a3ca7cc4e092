package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"carrick/cluster/failure"
)

// Check is one assertion about one side. Run sees that side and the other
// side's facts, never both clusters.
type Check struct {
	Name  string // "gateway-up": lower-kebab-case, unique in the guide
	Title string // an assertion that reads right when it passes and when it fails: "the gateway pod runs"
	Why   string // why it matters: what goes wrong later if it does not hold
	// where upstream says so: "owner/repository: path (symbol)", "owner/repository#issue", a page's URL
	References []string
	On         Side   // Local, Remote or Both (then it runs once a side)
	From       string // where it looks from, when not the side's API: "this machine"
	// Needs are checks without which this one says nothing: "name" on the same
	// side (or on its only side), "peer/name" on the other. A need that does
	// not hold makes the verdict a skip; it never delays a read. Only where both
	// are unknown, because the side does not answer, the verdict stays unknown.
	Needs   []string
	Timeout time.Duration // how long waiting may last, from the object's own time; 0: for ever
	// FixedBy is the action that makes it true, and then the fix where Run gives
	// none; "": nothing that carrick does. In a check of both sides ${side} stands
	// for the guide's name of the side that was looked at: "${side}-keys".
	FixedBy string
	// Rights: it asks whether the user may do what the guide does on this side.
	// Where an action can't be planned yet, apply looks at that before it begins.
	Permissions bool
	When        func(Env) bool
	Run         func(context.Context, Env) Result
	// Tried says when what a pass goes by was tried, and on what; nil: it goes by what is so now. What has changed since
	// makes the pass a warning.
	Tried func(context.Context, Env) (Tried, error)
	// NotChecked says what it would take to look, for rows of a contract that
	// this guide leaves out. Run is nil then and the verdict a skip.
	NotChecked string
}

// Status is what a check says.
type Status int

// The statuses. Pending is the zero value: not looked at yet.
const (
	Pending Status = iota
	Waiting
	Pass
	Warn
	Fail
	Skip
	Unknown
)

// Statuses is how many there are.
const Statuses = len(statusNames)

var statusNames = [...]string{"pending", "waiting", "pass", "warn", "fail", "skip", "unknown"}

func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return "unknown"
	}
	return statusNames[s]
}

// MarshalText gives the word: reports carry words, not numbers.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *Status) UnmarshalText(b []byte) error {
	for i, n := range statusNames {
		if n == string(b) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("no status is called %q", b)
}

// Holds tells whether a need on this verdict is met: a warning does, an
// unknown does not.
func (s Status) Holds() bool { return s == Pass || s == Warn }

// Result is the verdict of one look.
type Result struct {
	Status    Status
	Found     string    // what was found, in plain words, with names and values
	Fix       string    // what to do, as something to run where there is such a thing
	Lines     []string  // what was found in full, such as a table, for where there is room for it
	Err       error     // for the log, never for the screen
	Since     time.Time // waiting counts from here: the object's own timestamp
	Again     time.Time // look again then, although nothing read may have changed
	alone     bool      // the action that mends this check does not mend this: WithoutAction
	Secondary bool      // something else usually causes it: Symptom
	Undone    bool      // what an action creates does not exist: Undone
	NotTried  bool      // what an action tries was not tried: NotTried
	told      Status    // of a skip: what the admin of that side saw, by a file of facts
	PeerFile  bool      // of a skip: the other side's admin has to hand over what it takes to look
	Unasked   bool      // the answers don't ask for the action that mends this check
	Answer    string    // of a check that does not apply: the answer that decides it, "network.join: no"; "": none
	mend      string    // the action that mends it, where that is known only now
}

// Passed is a pass; found says what was seen.
func Passed(found string, args ...any) Result {
	return Result{Status: Pass, Found: text(found, args)}
}

// Waits is for what is on its way; since is the object's own time.
func Waits(since time.Time, found string, args ...any) Result {
	return Result{Status: Waiting, Found: text(found, args), Since: since}
}

// Warned is for what works but should not stay so.
func Warned(found, fix string) Result { return Result{Status: Warn, Found: found, Fix: fix} }

// Failed is for what does not hold.
func Failed(found, fix string) Result { return Result{Status: Fail, Found: found, Fix: fix} }

// Undone is a failure for what an action of the guide creates and what does not exist. As long as nothing of that step
// or a later one exists, it is work to be done, and no trouble's cause.
func Undone(found string) Result { return Result{Status: Fail, Found: found, Undone: true} }

// NotTried is a failure for what an action of the guide tries and what was not tried yet. It is no trouble's cause.
func NotTried(found string) Result { return Result{Status: Fail, Found: found, NotTried: true} }

// Symptom is the result of what another failure usually causes, whatever it is: it comes after what is wrong.
func (r Result) Symptom() Result {
	r.Secondary = true
	return r
}

// NotYet is the result of a look that waits for the admin to do something first, such as to sign in: it is no trouble's
// cause.
func (r Result) NotYet() Result {
	r.NotTried = true
	return r
}

// WithoutAction is the result of a check that an action mends, and does not mend this time: only the fix does.
func (r Result) WithoutAction() Result {
	r.alone = true
	return r
}

// FixedBy is the result with the action that mends this, where it is another than the check's, or the check has none.
func (r Result) FixedBy(action string) Result {
	r.mend = action
	return r
}

// Skipped is for what was not looked at; why says the reason.
func Skipped(why string, args ...any) Result {
	return Result{Status: Skip, Found: text(why, args)}
}

// Errored turns an error of a look into the verdict unknown, in plain words. A
// fact that is not there yet (AbsentError) makes it a skip instead.
func Errored(err error) Result {
	if absent := (*AbsentError)(nil); errors.As(err, &absent) {
		r := Skipped("%s", absent.Error())
		r.PeerFile = absent.PeerFile
		return r
	}
	return Result{Status: Unknown, Found: failure.Explain(err), Err: err}
}

// Allows tells whether what leans on this verdict may go on: it holds, held when
// the other admin looked, or does not apply to these answers.
func (r Result) Allows() bool {
	return r.Status.Holds() || (r.Status == Skip && (r.Found == NotAsked || r.told.Holds()))
}

// Reporting is a skip with what the admin of that side saw, by a facts file.
func (r Result) Reporting(s Status) Result {
	r.told = s
	return r
}

// Told is what the other admin's file says of a check that was not looked at from
// here; ok is false where no file says anything.
func (r Result) Told() (s Status, ok bool) { return r.told, r.told != Pending }

// Or adds what to do to a verdict that has no fix of its own.
func (r Result) Or(fix string) Result {
	if r.Fix == "" {
		r.Fix = fix
	}
	return r
}

func text(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// Says is what was found in words for people: of a check that does not apply, with which answer.
func (r Result) Says() string {
	if r.Found == NotAsked && r.Answer != "" {
		return "does not apply with " + r.Answer
	}
	return r.Found
}

// Applies reports whether the answers ask for a check of a step. If not, answer is the one that decides that: the one
// which the condition read last. "": it read none.
func Applies(guide *Guide, step *Step, check *Check, env Env) (applies bool, answer string) {
	if lookup := env.Answers.Lookup; lookup != nil {
		env.Answers.Lookup = func(key string) any {
			v := lookup(key)
			if q, _ := guide.Question(key); q != nil {
				answer = key + ": " + q.inWords(v)
			}
			return v
		}
	}
	return (step.When == nil || step.When(env)) && (check.When == nil || check.When(env)), answer
}

// inWords is an answer for a sentence.
func (q *Question) inWords(v any) string {
	switch text := strings.Join(strings.Fields(q.Show(v)), " "); {
	case text == "":
		return "empty"
	case q.Kind == YesNo && text == "true":
		return "yes"
	case q.Kind == YesNo && text == "false":
		return "no"
	default:
		return text
	}
}

// NotAsked is found of what the answers make needless.
const NotAsked = "does not apply to these answers"
