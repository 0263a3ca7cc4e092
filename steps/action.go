package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/permission"
)

// Action is one change that a guide makes on one side.
type Action struct {
	Name, Title string
	On          Side
	// Needs are the checks that must hold before the action runs, named as in Check.Needs.
	Needs []string
	// First are the checks that run before the action, named as in Check.Needs. Their results are shown but never block
	// the action. Use it for checks whose subject can no longer be observed afterwards.
	First []string
	When  func(Env) bool
	// Reads are permissions for objects that the action does not write, but that its When or the facts behind its
	// answers read.
	Reads []permission.Rule
	Doer
}

// Wanted reports whether the answers configure action a, which is in step: the When of both must be true.
func (a *Action) Wanted(step *Step, env Env) bool {
	return (step.When == nil || step.When(env)) && (a.When == nil || a.When(env))
}

// Doer plans, applies and undoes a change. Package action has the implementations: Manifest, Chart, File, Command,
// Edit, Mint and Call. A Doer that can be exported also implements action.Exporter.
type Doer interface {
	// Plan returns what Do would change and the permissions that it requires. It changes nothing. If a fact does not
	// exist yet, Plan returns an AbsentError and the engine shows the action as pending.
	Plan(context.Context, Env) (Change, error)
	// Do applies the change. It is idempotent: a second call changes nothing.
	Do(context.Context, Env, Progress) error
	// PlanUndo returns what Undo would revert, and what it would keep and why.
	PlanUndo(context.Context, Env) (Change, error)
	// Undo reverts only what Do created or changed.
	Undo(context.Context, Env, Progress) error
}

// Change is the plan of one action: what Do or Undo would change.
type Change struct {
	Items       []Item
	Permissions []permission.Rule // all permissions that the change requires, granted or not
	// Along lists, by side, the objects that are deleted automatically along with the objects that an undo deletes,
	// each as "ResourceQuota namespace/name". They do not count as the content of a namespace that the same undo
	// deletes.
	Along map[Side][]string
}

// Verb names what happens to an Item.
type Verb string

// The verbs, worded as on the screen.
const (
	Create  Verb = "create"
	Update  Verb = "change"
	Replace Verb = "replace" // deleted and recreated: it can't be changed in place
	Leave   Verb = "leave"   // already as expected, or not managed by carrick: Note says which
	Delete  Verb = "delete"
	Release Verb = "release" // kept; only what this link wrote into it is removed
	Run     Verb = "run"
)

// Changes reports whether the verb changes anything.
func (v Verb) Changes() bool { return v != Leave }

// Item is one object, file or request that a change affects.
type Item struct {
	Verb      Verb
	What      string // "Role renku-sessions/renku", "POST /clusters", "/etc/ood/config/hook.env"
	Diff      string // unified diff, secrets masked
	Note      string // why it is kept, or what is deleted along with it
	Held      bool   // in an undo: kept although the link created it, because others depend on it; Note names them
	Unentered bool   // in an undo: it has the link's label but no inventory entry, and is kept
	Left      bool   // in an undo: kept although the link wrote it, because the file can't be undone; Note says why
	// Terminating is set in an undo for an object that is already being deleted: carrick only waits until it is gone.
	Terminating bool
	Refused     bool               // the server would reject it now: Note says why
	Conflicts   []failure.Conflict // fields that another manager owns
	Hash        string             // of the content to write: apply verifies that it still matches the confirmed plan

	MissingNamespace string // the namespace that the object requires and that does not exist

	Entry   *Entry // its inventory entry; nil: not an object that an action writes
	Creates bool   // it is the inventory itself, which is about to be created
}

// AppliedAgain says what happens to a field that carrick took over once its former manager applies it again. Helm 3 and
// kubectl apply send merge patches; Helm 4 uses server-side apply.
const AppliedAgain = "Helm 3 and kubectl apply overwrite them when they apply again; " +
	"Helm 4 and kubectl apply --server-side get a conflict."

// Progress receives the events of a running action. An event's Verb and What are set if something changed. Its Asks is
// set if a person must do what its Text says before the action continues. Its Text is always set.
type Progress func(Event)

// Event is one report of a running action.
type Event struct {
	Step, Action string
	Side         Side
	Verb         Verb
	What         string
	Hash         string
	Text         string
	Asks         bool
}

// Say reports a message.
func (p Progress) Say(format string, args ...any) {
	if p != nil {
		p(Event{Text: fmt.Sprintf(format, args...)})
	}
}

// Ask asks a person to do something, such as to open an address and enter a code there. The request stays on screen
// until the action changes something or ends, so put the address and the code into one call. An action asks only if
// Env.Attended is true.
func (p Progress) Ask(format string, args ...any) {
	if p != nil {
		p(Event{Text: fmt.Sprintf(format, args...), Asks: true})
	}
}

// Did reports a change, for the screen and the audit log. hash is the hash of what was written, or "" if nothing was.
func (p Progress) Did(verb Verb, what, hash string) {
	if p != nil {
		p(Event{Verb: verb, What: what, Hash: hash, Text: string(verb) + " " + what})
	}
}

// ApplyOptions are what the user allowed in addition to confirming the plan.
type ApplyOptions struct {
	TakeOver bool // take over fields that another manager owns
	Replace  bool // delete and recreate objects that can't be changed in place
}

// Fingerprint returns a hash of parts. A confirmed plan is applied only while the hashes of its items are unchanged.
func Fingerprint(parts ...any) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(parts)
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// HashOf returns the hash of text in the format of an Edit's annotation.
func HashOf(text string) string { return strings.TrimPrefix(masked.New(text).Hash(), "sha256:") }

// JoinNotes joins two notes of an Item.
func JoinNotes(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
