package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"carrick/cluster/failure"
)

// Check is one assertion about one side. Run sees that side and the other side's facts, but never both clusters.
type Check struct {
	Name  string // "gateway-up": lower-kebab-case, unique in the guide
	Title string // an assertion that reads well on pass and on failure: "the gateway pod runs"
	Why   string // why it matters: what fails later if it does not hold
	// References are the upstream sources: "owner/repository: path (symbol)", "owner/repository#issue", or the URL of a
	// page.
	References []string
	On         Side   // Local, Remote, or Both, which runs it once per side
	From       string // where it runs, if not against the side's API: "this machine"
	// Needs are the checks that this one depends on: "name" on the same side (or on its only side), "peer/name" on the
	// other side. If a need does not hold, the check still runs, but its verdict is a skip. If both verdicts are
	// unknown because the side does not answer, the verdict stays unknown.
	Needs   []string
	Timeout time.Duration // how long it may stay pending, counted from the object's own time; 0: indefinitely
	// FixedBy is the action that makes the check pass, and the suggested fix if Run returns none; "": no action does. In a
	// check of both sides, ${side} is replaced by the guide's name of the checked side: "${side}-keys".
	FixedBy string
	// Permissions marks a check of the user's permissions for the guide on this side. If an action can't be planned yet,
	// apply runs this check before it begins.
	Permissions bool
	When        func(Env) bool
	Run         func(context.Context, Env) Result
	// Tried returns when the last trial ran and what its result depends on. It is nil for a check that reads the
	// current state instead of the result of a trial. If a dependency has changed since the trial, a pass becomes a
	// warning.
	Tried func(context.Context, Env) (Tried, error)
	// NotChecked describes a requirement that this guide does not check. Run is then nil and the verdict is a skip.
	NotChecked string
}

// Status is the verdict of a check.
type Status int

// The statuses. Pending is the zero value: not checked yet.
const (
	Pending Status = iota
	Waiting
	Pass
	Warn
	Fail
	Skip
	Unknown
)

// Statuses is the number of statuses.
const Statuses = len(statusNames)

var statusNames = [...]string{"pending", "waiting", "pass", "warn", "fail", "skip", "unknown"}

func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return "unknown"
	}
	return statusNames[s]
}

// MarshalText returns the status as a word, so that reports contain words and not numbers.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the word that MarshalText returns.
func (s *Status) UnmarshalText(b []byte) error {
	for i, n := range statusNames {
		if n == string(b) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("unknown status %q", b)
}

// Holds reports whether the status satisfies a need: a warning does, unknown does not.
func (s Status) Holds() bool { return s == Pass || s == Warn }

// Result is the verdict of one run of a check.
type Result struct {
	Status    Status
	Found     string    // what was found, in plain words, with names and values
	Fix       string    // what to do, as a command where possible
	Lines     []string  // the finding in full, such as a table, where there is space for it
	Err       error     // for the log, never for the screen
	Since     time.Time // start of waiting: the object's own timestamp
	Again     time.Time // when to run again even if nothing that was read has changed
	alone     bool      // the check's action does not fix this failure; set by WithoutAction
	Secondary bool      // usually caused by another failure; set by Symptom
	Undone    bool      // an object that an action creates does not exist; set by func Undone
	NotTried  bool      // an action's trial has not run yet; set by func NotTried
	told      Status    // of a skip: the verdict in the other admin's facts file
	PeerFile  bool      // of a skip: it requires data that the other side's admin has not provided
	Unasked   bool      // the answers don't configure the action that fixes this check
	Answer    string    // if the check is not applicable: the answer that decides it, "network.enabled: no"; "": none
	mend      string    // the action that fixes this failure, if it depends on the finding
}

// Passed returns a pass; found says what the check found.
func Passed(found string, args ...any) Result {
	return Result{Status: Pass, Found: text(found, args)}
}

// Waits returns a result for something that is still in progress; since is the object's own timestamp.
func Waits(since time.Time, found string, args ...any) Result {
	return Result{Status: Waiting, Found: text(found, args), Since: since}
}

// Warned returns a warning: it works, but should be changed.
func Warned(found, fix string) Result { return Result{Status: Warn, Found: found, Fix: fix} }

// Failed returns a failure.
func Failed(found, fix string) Result { return Result{Status: Fail, Found: found, Fix: fix} }

// Undone returns a failure for an object that an action of the guide creates and that does not exist. While nothing of
// that step or a later one exists, it counts as work to do, not as the cause of another failure.
func Undone(found string) Result { return Result{Status: Fail, Found: found, Undone: true} }

// NotTried returns a failure for a trial that an action of the guide runs and that has not run yet. It never counts as
// the cause of another failure.
func NotTried(found string) Result { return Result{Status: Fail, Found: found, NotTried: true} }

// Symptom marks a result that another failure usually causes. It is listed after the causes.
func (r Result) Symptom() Result {
	r.Secondary = true
	return r
}

// NotYet marks a result that waits for the admin to do something first, such as to sign in. It never counts as the
// cause of another failure.
func (r Result) NotYet() Result {
	r.NotTried = true
	return r
}

// WithoutAction marks a failure that the check's action does not fix this time; only Fix does.
func (r Result) WithoutAction() Result {
	r.alone = true
	return r
}

// FixedBy sets the action that fixes this failure, if it is not the check's own or the check has none.
func (r Result) FixedBy(action string) Result {
	r.mend = action
	return r
}

// Skipped returns a skip; why gives the reason.
func Skipped(why string, args ...any) Result {
	return Result{Status: Skip, Found: text(why, args)}
}

// Errored returns the verdict unknown with the error in plain words. For an AbsentError, which means that a fact does
// not exist yet, it returns a skip instead.
func Errored(err error) Result {
	if absent := (*AbsentError)(nil); errors.As(err, &absent) {
		r := Skipped("%s", absent.Error())
		r.PeerFile = absent.PeerFile
		return r
	}
	return Result{Status: Unknown, Found: failure.Explain(err), Err: err}
}

// Allows reports whether cells and actions that depend on this verdict may run: it holds, it held when the other admin
// checked it, or it is not applicable.
func (r Result) Allows() bool {
	return r.Status.Holds() || (r.Status == Skip && (r.Found == NotAsked || r.told.Holds()))
}

// Reporting adds to a skip the verdict that a facts file contains.
func (r Result) Reporting(s Status) Result {
	r.told = s
	return r
}

// Told returns the verdict that the other admin's facts file contains for a check that can't run from here. ok is false
// if there is none.
func (r Result) Told() (s Status, ok bool) { return r.told, r.told != Pending }

// Or sets the fix of a result that has none.
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

// Says returns the finding as text. For a check that is not applicable it names the deciding answer.
func (r Result) Says() string {
	if r.Found == NotAsked && r.Answer != "" {
		return "not applicable with " + r.Answer
	}
	return r.Found
}

// Applies reports whether a check is applicable with the current answers: whether its When and that of its step are
// true. answer is the answer that these conditions read last, such as "network.enabled: no", or "" if they read none.
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

// inWords returns an answer on one line, in words that fit into a sentence: "empty", "yes" and "no" for such answers.
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

// NotAsked is the finding of a check that is not applicable.
const NotAsked = "not applicable with these answers"
