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

// Action is one change on one side.
type Action struct {
	Name, Title string
	On          Side
	// Needs are checks that must hold before it is done, named as in
	// Check.Needs.
	Needs []string
	// First are checks that are looked at before it is done, named likewise. What
	// they say is told and stops nothing: what can only be seen until then.
	First []string
	When  func(Env) bool
	// Reads are rights beyond those of its own objects: for the facts that its
	// answers and its When come from.
	Reads []permission.Rule
	Doer
}

// Wanted reports whether the answers ask for an action of a step.
func (a *Action) Wanted(step *Step, env Env) bool {
	return (step.When == nil || step.When(env)) && (a.When == nil || a.When(env))
}

// Doer plans, does and undoes a change. Package action has the implementations: Manifest, Chart, File, Command, Edit,
// Mint and Call. A Doer that can be exported is an action.Exporter, too.
type Doer interface {
	// Plan says what Do would change and what rights that takes. It touches
	// nothing. A fact that is not there yet comes back as an AbsentError: the
	// engine shows the action as not known yet.
	Plan(context.Context, Env) (Change, error)
	// Do makes it so. Doing it twice changes nothing.
	Do(context.Context, Env, Progress) error
	// PlanUndo says what Undo would take back, and what it leaves and why.
	PlanUndo(context.Context, Env) (Change, error)
	// Undo takes back only what Do made.
	Undo(context.Context, Env, Progress) error
}

// Change is what an action would change.
type Change struct {
	Items       []Item
	Permissions []permission.Rule // all that it takes, whether or not it is allowed
	// Along is what goes by itself with what an undo takes back, by side, each as
	// "ResourceQuota namespace/name": a namespace that holds nothing else is empty
	// by the time its turn comes.
	Along map[Side][]string
}

// Verb says what happens to a thing.
type Verb string

// The verbs, in the words of the screen.
const (
	Create  Verb = "create"
	Update  Verb = "change"
	Replace Verb = "replace" // deleted and made anew: it can't be changed in place
	Leave   Verb = "leave"   // it is as it should be, or not ours to touch: Note says which
	Delete  Verb = "delete"
	Release Verb = "release" // it stays; only what this link wrote into it goes
	Run     Verb = "run"
)

// Changes tells whether the verb changes anything.
func (v Verb) Changes() bool { return v != Leave }

// Item is one thing that a change touches.
type Item struct {
	Verb      Verb
	What      string // "Role renku-sessions/renku", "POST /clusters", "/etc/ood/config/hook.env"
	Diff      string // unified diff, secrets masked
	Note      string // why it is left, what comes with it
	Held      bool   // of an undo: the link made it, and it stands while others need it: Note says who
	Unentered bool   // of an undo: it has the link's mark, and the inventory does not have it: it is left
	Left      bool   // of an undo: a file that the link wrote and that it can't undo: Note says why
	// Terminating: of an undo: it is being deleted already, and carrick only waits until it is gone.
	Terminating bool
	Refused     bool               // the server would not take it now: Note says why
	Conflicts   []failure.Conflict // fields that another manager owns
	Hash        string             // of what would be written: a plan that was confirmed is the one that is done

	MissingNamespace string // the namespace that it needs, and that does not exist

	Entry   *Entry // of the inventory; nil: it is no object that an action writes
	Creates bool   // it is the inventory itself, which is created
}

// AppliedAgain says what becomes of a field that carrick took over once its former manager applies it again. Helm 3 and
// kubectl apply send merge patches, Helm 4 applies server-side.
const AppliedAgain = "Helm 3 and kubectl apply overwrite them when they apply again; " +
	"Helm 4 and kubectl apply --server-side get a conflict."

// Progress hears what an action does while it does it. Verb and What are set
// when something was changed, Asks when a person has to do as Text says before
// the action goes on, Text always.
type Progress func(Event)

// Event is one thing that happened.
type Event struct {
	Step, Action string
	Side         Side
	Verb         Verb
	What         string
	Hash         string
	Text         string
	Asks         bool
}

// Say tells something in words.
func (p Progress) Say(format string, args ...any) {
	if p != nil {
		p(Event{Text: fmt.Sprintf(format, args...)})
	}
}

// Ask tells a person what to do, such as an address to open and the code to
// type there. It stays in view until the action changes something or ends, so
// the address and the code belong into one call. An action asks only where
// Env.Attended is true.
func (p Progress) Ask(format string, args ...any) {
	if p != nil {
		p(Event{Text: fmt.Sprintf(format, args...), Asks: true})
	}
}

// Did tells of a change, for the screen and the audit log. hash is of what was
// written; "": of nothing.
func (p Progress) Did(verb Verb, what, hash string) {
	if p != nil {
		p(Event{Verb: verb, What: what, Hash: hash, Text: string(verb) + " " + what})
	}
}

// ApplyOptions is what a user allowed beyond the plain yes.
type ApplyOptions struct {
	TakeOver bool // take fields that another manager owns
	Replace  bool // delete and make anew what can't be changed in place
}

// Fingerprint tells states apart: a plan is done as long as its items have the same.
func Fingerprint(parts ...any) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(parts)
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// HashOf tells one text from another, as the annotation of an Edit has it.
func HashOf(text string) string { return strings.TrimPrefix(masked.New(text).Hash(), "sha256:") }

// JoinNotes joins two notes of an item.
func JoinNotes(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
