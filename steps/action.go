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
	// Needs lists the checks that must pass before the action runs. They are named as in Check.Needs.
	Needs []string
	// First lists the checks that run before the action. They are named as in Check.Needs. Their results are shown but
	// never block the action. Use First for checks whose subject can no longer be observed afterwards.
	First []string
	When  func(Env) bool
	// Reads lists additional read permissions. They cover the objects that When reads and the objects behind the answers.
	Reads []permission.Rule
	Doer
}

// Wanted reports whether the answers configure the action. Both its own When and the When of its step must return true.
func (a *Action) Wanted(step *Step, env Env) bool {
	return (step.When == nil || step.When(env)) && (a.When == nil || a.When(env))
}

// Doer plans, applies and undoes a change. Package action has the implementations, such as Manifest, Chart and Command.
// A Doer that can be exported also implements action.Exporter.
type Doer interface {
	// Plan returns what Do would change and the permissions that Do requires. It changes nothing. If a fact does not
	// exist yet, Plan returns an AbsentError and the engine shows the action as pending.
	Plan(context.Context, Env) (Change, error)
	// Do applies the change. It is idempotent: a second call changes nothing.
	Do(context.Context, Env, Progress) error
	// PlanUndo returns what Undo would revert. For everything that Undo would keep, it also returns the reason.
	PlanUndo(context.Context, Env) (Change, error)
	// Undo reverts only what Do created or changed.
	Undo(context.Context, Env, Progress) error
}

// Change is the plan of one action. It lists what Do or Undo would change.
type Change struct {
	Items       []Item
	Permissions []permission.Rule // all permissions that the change requires, including those already granted
	// Along lists, by side, the objects that Kubernetes deletes as a consequence of an undo. Each is written as
	// "ResourceQuota namespace/name". If the undo also deletes a namespace, these objects do not count as content of that
	// namespace.
	Along map[Side][]string
}

// Verb names what happens to an Item.
type Verb string

// The verbs, worded as on the screen.
const (
	Create  Verb = "create"
	Update  Verb = "change"
	Replace Verb = "replace" // deleted and recreated, because it can't be changed in place
	Leave   Verb = "leave"   // unchanged; Note says whether it is already correct or not managed by carrick
	Delete  Verb = "delete"
	Release Verb = "release" // kept; only what this link wrote into it is removed
	Run     Verb = "run"
)

// Changes reports whether the verb changes anything.
func (v Verb) Changes() bool { return v != Leave }

// Item is one object, file or request that a change affects.
type Item struct {
	Verb      Verb
	What      string // such as "Role renku-sessions/renku", "POST /clusters" or "/etc/ood/config/hook.env"
	Diff      string // unified diff; secrets are masked
	Note      string // why it is kept, or what is deleted along with it
	Held      bool   // undo only: kept although the link created it, because others depend on it; Note names them
	Unentered bool   // undo only: kept because it has the link's label but no inventory entry
	Left      bool   // undo only: kept although the link wrote it, because the file can't be restored; Note says why
	ByOthers  bool   // undo only: kept because another program created it; Note says how to delete it
	// Terminating is set in an undo if the object is already being deleted. carrick then only waits until it is gone.
	Terminating bool
	Refused     bool               // the server would reject it now; Note says why
	Conflicts   []failure.Conflict // fields that another manager owns
	Hash        string             // hash of the content to write; apply compares it with the confirmed plan

	MissingNamespace string // the required namespace, if it does not exist

	Entry   *Entry // the inventory entry; nil if the item is not an object that an action writes
	Creates bool   // the item is the inventory, which does not exist yet
}

// AppliedAgain describes what happens when carrick has taken over a field and the former manager applies the field
// again. Helm 3 and kubectl apply send merge patches. Helm 4 uses server-side apply.
const AppliedAgain = "Helm 3 and kubectl apply overwrite them when they apply again; " +
	"Helm 4 and kubectl apply --server-side get a conflict."

// Progress receives the events of a running action. Text is always set. Verb and What are set if something changed.
// Asks is set if a person must do what Text says before the action continues.
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

// Ask tells a person to do something, such as to open an address and enter a code. The request stays on screen until
// the action changes something or ends. Put the address and the code into one call. An action calls Ask only if
// Env.Attended is true.
func (p Progress) Ask(format string, args ...any) {
	if p != nil {
		p(Event{Text: fmt.Sprintf(format, args...), Asks: true})
	}
}

// Did reports a change for the screen and the audit log. hash is the hash of the written content, or "" if nothing was
// written.
func (p Progress) Did(verb Verb, what, hash string) {
	if p != nil {
		p(Event{Verb: verb, What: what, Hash: hash, Text: string(verb) + " " + what})
	}
}

// ApplyOptions are what the user allowed in addition to the confirmed plan.
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

// HashOf returns the hash of text in the format of the annotation that Edit writes.
func HashOf(text string) string { return strings.TrimPrefix(masked.New(text).Hash(), "sha256:") }

// JoinNotes joins two notes of an Item.
func JoinNotes(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
