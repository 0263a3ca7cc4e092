package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"carrick/cluster/failure"
)

// Check is one assertion about one side. Run can read that side and the other side's facts, but never both clusters.
type Check struct {
	Name  string // lower-kebab-case and unique in the guide, such as "gateway-up"
	Title string // an assertion that reads well on pass and on failure, such as "the gateway pod runs"
	Why   string // why it matters: what fails later if the check fails
	// References lists the upstream sources as "owner/repository: path (symbol)", "owner/repository#issue" or URLs.
	References []string
	On         Side   // Local, Remote or Both; Both runs the check once per side
	From       string // where the check runs if not against the side's API, such as "this machine"
	// Needs lists the checks that this check depends on. "name" is a check on the same side, or on its only side.
	// "peer/name" is a check on the other side. If a need fails, the check still runs, but its verdict is a skip. If both
	// verdicts are unknown because the side does not answer, the verdict stays unknown.
	Needs   []string
	Timeout time.Duration // how long it can stay pending, counted from Result.Since; 0 means indefinitely
	// FixedBy is the action that makes the check pass. It is also the suggested fix if Run returns none. If no action
	// fixes the check, FixedBy is "". If the check covers both sides, "${side}-keys" names the action of the checked
	// side, because ${side} is replaced by the guide's name for that side.
	FixedBy string
	// Permissions is true for a check of the user's permissions for the guide on this side. If an action can't be planned
	// yet, apply runs this check before it begins.
	Permissions bool
	When        func(Env) bool
	Run         func(context.Context, Env) Result
	// Tried returns when the last trial ran and what its result depends on. If a dependency has changed since then, a
	// pass becomes a warning. Tried is nil for a check that reads the current state instead of the result of a trial.
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

// MarshalText returns the status as a word for reports.
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

// Holds reports whether the status satisfies a need. A warning does, but unknown does not.
func (s Status) Holds() bool { return s == Pass || s == Warn }

// Result is the verdict of one run of a check.
type Result struct {
	Status    Status
	Found     string    // what was found, in plain words, with names and values
	Fix       string    // what to do, if possible as a command
	Lines     []string  // the full finding, such as a table, for views with enough space
	Err       error     // for the log, never for the screen
	Since     time.Time // start of waiting: the object's own timestamp
	Again     time.Time // when to run again even if nothing has changed
	alone     bool      // the check's action does not fix this failure; set by WithoutAction
	Secondary bool      // usually caused by another failure; set by Symptom
	Undone    bool      // an object that an action creates does not exist; set by func Undone
	NotTried  bool      // an action's trial has not run yet; set by func NotTried
	Permanent bool      // only for a failure: waiting does not make it pass; set by Permanently
	Made      bool      // only for a failure: this link ran the action that fixes it; the inventory sets this, too
	told      Status    // only for a skip: the verdict in the other admin's facts file
	PeerFile  bool      // only for a skip: the check requires data that the other side's admin has not provided
	Unasked   bool      // the answers don't configure the action that fixes this check
	Answer    string    // the answer that makes the check not applicable, such as "network.enabled: no"
	mend      string    // the action that fixes this failure, if it depends on the finding
}

// Passed returns a pass.
func Passed(found string, args ...any) Result {
	return Result{Status: Pass, Found: text(found, args)}
}

// Waits returns a result for something that is still in progress. since is the object's own timestamp.
func Waits(since time.Time, found string, args ...any) Result {
	return Result{Status: Waiting, Found: text(found, args), Since: since}
}

// Warned returns a warning. The subject works, but it should be changed.
func Warned(found, fix string) Result { return Result{Status: Warn, Found: found, Fix: fix} }

// Failed returns a failure.
func Failed(found, fix string) Result { return Result{Status: Fail, Found: found, Fix: fix} }

// Undone returns a failure because an object that an action creates does not exist. While no object of that step or of
// a later step exists, the failure counts as work to do, not as the cause of another failure.
func Undone(found string) Result { return Result{Status: Fail, Found: found, Undone: true} }

// NotTried returns a failure because an action's trial has not run yet. It never counts as the cause of another
// failure.
func NotTried(found string) Result { return Result{Status: Fail, Found: found, NotTried: true} }

// Symptom marks the result as a symptom, which another failure usually causes. Symptoms are listed after their causes.
func (r Result) Symptom() Result {
	r.Secondary = true
	return r
}

// Permanently marks a failure that ends only after a person has changed an answer or something else. An apply does not wait
// for it to pass.
func (r Result) Permanently() Result {
	r.Permanent = r.Status == Fail
	return r
}

// NotYet returns the result as one that waits for the admin to act first, for example to sign in. It never counts as
// the cause of another failure.
func (r Result) NotYet() Result {
	r.NotTried = true
	return r
}

// WithoutAction returns a failure that the check's action does not fix. Only the manual Fix does.
func (r Result) WithoutAction() Result {
	r.alone = true
	return r
}

// FixedBy sets the action that fixes this failure. Use it if the check has no action or another action fixes the
// failure.
func (r Result) FixedBy(action string) Result {
	r.mend = action
	return r
}

// Skipped returns a skip. why is the reason.
func Skipped(why string, args ...any) Result {
	return Result{Status: Skip, Found: text(why, args)}
}

// Errored returns the verdict unknown with the error in plain words. An AbsentError means that a fact does not exist
// yet, so Errored returns a skip for it.
func Errored(err error) Result {
	if absent := (*AbsentError)(nil); errors.As(err, &absent) {
		r := Skipped("%s", absent.Error())
		r.PeerFile = absent.PeerFile
		return r
	}
	return Result{Status: Unknown, Found: failure.Explain(err), Err: err}
}

// Allows reports whether cells and actions that depend on this verdict can run. They can if the check passes or warns
// now, did so when the other admin ran it, or is not applicable.
func (r Result) Allows() bool {
	return r.Status.Holds() || (r.Status == Skip && (r.Found == NotAsked || r.told.Holds()))
}

// Reporting adds the verdict from a facts file to a skip.
func (r Result) Reporting(s Status) Result {
	r.told = s
	return r
}

// Told returns the verdict in the other admin's facts file for a check that carrick can't run itself. If there is none,
// ok is false.
func (r Result) Told() (s Status, ok bool) { return r.told, r.told != Pending }

// Or sets the fix if the result has none.
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

// Says returns the finding as text. For a check that is not applicable, it names the deciding answer.
func (r Result) Says() string {
	if r.Found == NotAsked && r.Answer != "" {
		return "not applicable with " + r.Answer
	}
	return r.Found
}

// Applies reports whether a check is applicable with the current answers. Both its own When and the When of its step
// must return true. answer is the last answer that these functions read, such as "network.enabled: no", or "" if they
// read none.
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

// inWords returns an answer as words on one line. Without a value it returns "empty", and for a yes-or-no answer "yes"
// or "no".
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
