package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"carrick/cluster"
	"carrick/cluster/host"
	"carrick/cluster/masked"
	"carrick/cluster/web"
)

// Env is everything that a check, a fact, an action, a default or a condition can use. It contains its own side, the
// other side's facts, and the answers.
type Env struct {
	Side    Side
	Cluster *cluster.Cluster // this side's cluster; nil if this side is a host
	Host    *host.Host       // this side's machine; nil if this side is a cluster
	Own     Facts            // this side's facts
	Peer    Facts            // the other side's facts
	Answers Answers
	Link    string       // name of the link
	Action  string       // the current action; "" outside of actions
	Assets  fs.FS        // the guide's assets directory
	Apply   ApplyOptions // what the user allowed; only for Do of an action
	// Attended is true if a person sees the action's messages and can do what it asks, such as to log in with a code. If
	// it is false, an action must not wait for a person. It must return an error that says what to provide instead
	// (--secret KEY=@FILE).
	Attended bool
	// Exporting is true while an export is rendered. The export then includes objects that already exist, for example
	// because a GitOps tool applied an earlier export.
	Exporting bool

	// Runtime is set by package engine. Guides use the methods of Env instead. Unit tests can leave it zero.
	Runtime Runtime
}

// Runtime is the part of an Env that package engine sets and package action uses. Any field can be zero.
type Runtime struct {
	Guide    *Guide
	LinkPath string            // the link file; "" if it is not saved
	Sides    map[Side]SideInfo // both sides
	API      func() (*web.Client, error)
	Keep     func(key string, v masked.Value) error
	Given    func(key string) bool // reports whether the admin answered the question
	Emptied  func(key string) bool // reports whether the admin deliberately left the question empty
	Sound    func() error          // returns the error if the default of a used answer could not be read
	Cache    *sync.Map             // what actions have read for this Env; nil if nothing is cached
	Watched  bool                  // set for checks and their facts, whose reads are kept current
	Found    []string              // only for an undo: objects to delete by label alone (engine.Scope.Found)
	Along    []string              // only for a planned undo: what disappears because of earlier actions (Change.Along)
}

// SideInfo contains the names of a side.
type SideInfo struct {
	Role, Name, Config string // the guide's name for the side, the context, the kubeconfig
	// Unconfirmed returns an error while the signer of the side's facts file is not confirmed. Unconfirmed is nil if the
	// side is not known from a facts file.
	Unconfirmed func() error
}

// API returns a client of the setup's HTTP API. If the address is not known, the error is an AbsentError. Any other
// error means that the address is invalid.
func (e Env) API() (*web.Client, error) {
	if e.Runtime.API == nil {
		return nil, Absent("the guide has no API")
	}
	return e.Runtime.API()
}

// Keep stores the answer to a secret question in memory for the rest of this session. An example is a token that an
// action obtained when the user logged in.
func (e Env) Keep(key string, v masked.Value) error {
	if e.Runtime.Keep == nil {
		return fmt.Errorf("keep %s: there is no session", key)
	}
	return e.Runtime.Keep(key, v)
}

// Sound returns an error if the default of a used answer could not be read. The engine calls it after checks, plans and
// exports. If an answer decides what an Undo deletes, the Undo must call it.
func (e Env) Sound() error {
	if e.Runtime.Sound == nil {
		return nil
	}
	return e.Runtime.Sound()
}

// Answered reports whether the admin answered a question, in the link file or for this run. If not, its value is the
// default.
func (e Env) Answered(key string) bool { return e.Runtime.Given != nil && e.Runtime.Given(key) }

// LeftEmpty reports whether the admin deliberately left an optional question empty. Its default then does not apply.
func (e Env) LeftEmpty(key string) bool { return e.Runtime.Emptied != nil && e.Runtime.Emptied(key) }

// PeerFromFile reports whether the other side is known only from its admin's facts file.
func (e Env) PeerFromFile() bool { return e.Runtime.Sides[e.Side.Peer()].Unconfirmed != nil }

// PeerUnconfirmed returns an error if the signer of the other side's facts file is not confirmed yet. A key must not be
// used with an address from such a file, even if the key itself is not sent. If there is no such file, PeerUnconfirmed
// returns nil.
func (e Env) PeerUnconfirmed() error {
	if err := e.Runtime.Sides[e.Side.Peer()].Unconfirmed; err != nil {
		return err()
	}
	return nil
}

// SideName returns the guide's name for this side, such as "provider".
func (e Env) SideName() string { return e.Runtime.Sides[e.Side].Role }

// Kubectl returns the beginning of a kubectl command for this side. It contains the link's kubeconfig and context, so
// that users can paste the command.
func (e Env) Kubectl() string { return e.command(e.Side, "kubectl", " --context ") }

// PeerKubectl returns the beginning of a kubectl command for the other side.
func (e Env) PeerKubectl() string { return e.command(e.Side.Peer(), "kubectl", " --context ") }

// Helm returns the beginning of a helm command for this side, as Kubectl does.
func (e Env) Helm() string { return e.command(e.Side, "helm", " --kube-context ") }

func (e Env) command(side Side, words, context string) string {
	end := e.Runtime.Sides[side]
	if end.Config != "" {
		words += " --kubeconfig " + Quoted(end.Config)
	}
	if end.Name != "" {
		words += context + Quoted(end.Name)
	}
	return words
}

// LinkFile returns the path of this link's file, quoted for a shell. Use it in fixes, such as "carrick apply
// "+e.LinkFile().
func (e Env) LinkFile() string {
	if e.Runtime.LinkPath == "" {
		return e.Link + ".yaml"
	}
	return Quoted(e.Runtime.LinkPath)
}

// ApplyStep returns the command that applies the named steps of this link. Use it in fixes.
func (e Env) ApplyStep(names ...string) string {
	return "carrick apply " + e.LinkFile() + " --step " + strings.Join(names, " --step ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@=+-]+$`)

// Quoted quotes word for a POSIX shell. Users paste fixes into a shell, and a name from a cluster must remain one word.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// PeerName returns the guide's name for the other side.
func (e Env) PeerName() string { return e.Runtime.Sides[e.Side.Peer()].Role }

// Fact is a named value that is read from one side. Reading a fact changes nothing.
type Fact struct {
	Name   string
	Title  string // such as "the consumer's cluster id"
	On     Side   // Both means that each side has a fact of this name
	Secret bool   // the value is a masked.Value
	// Shared is true if the other side uses the fact (Env.Peer). The other side can use only shared facts, and a facts
	// file contains only shared facts.
	Shared bool
	// Now is true for a value that is valid only for a short time. A facts file does not contain it, because it would be
	// outdated.
	Now bool
	// Learn reads the value. If the value does not exist yet, Learn must return Absent(why).
	Learn func(context.Context, Env) (any, error)
}

// Facts are the facts of one side, by name. Using a fact is recorded like a read, so a check runs again when one of its
// facts changes.
type Facts struct {
	Lookup func(name string) (any, error)
}

// AbsentError is returned for a fact that does not exist, or not yet.
type AbsentError struct {
	Why      string
	PeerFile bool   // the fact belongs to the other side, and its admin must provide it in a facts file
	Ending   string // the object that is being deleted, such as "Namespace a"; it can be created again when it is gone
}

func (e *AbsentError) Error() string { return e.Why }

// Absent returns an AbsentError for a fact that does not exist.
func Absent(why string, args ...any) error { return &AbsentError{Why: text(why, args)} }

// IsAbsent reports whether err is an AbsentError.
func IsAbsent(err error) bool { return errors.As(err, new(*AbsentError)) }

// Value returns the named fact. Its type is string, bool, int, []string, map or masked.Value.
func (f Facts) Value(name string) (any, error) {
	if f.Lookup == nil {
		return nil, Absent("the other side is not known")
	}
	return f.Lookup(name)
}

// Text returns a fact that is a string.
func (f Facts) Text(name string) (string, error) { return factAs[string](f, name) }

// List returns a fact that is a list of strings.
func (f Facts) List(name string) ([]string, error) { return factAs[[]string](f, name) }

// Masked returns a fact that is a secret.
func (f Facts) Masked(name string) (masked.Value, error) { return factAs[masked.Value](f, name) }

// Map returns a fact that is a map.
func (f Facts) Map(name string) (map[string]any, error) { return factAs[map[string]any](f, name) }

// Field returns the value of a key in a map fact. If the fact is not known or has no such key, it returns nil.
func (f Facts) Field(name, key string) any {
	m, _ := factAs[map[string]any](f, name)
	return m[key]
}

// FieldText is like Field but returns a string, or "" if there is none.
func (f Facts) FieldText(name, key string) string {
	text, _ := f.Field(name, key).(string)
	return text
}

func factAs[T any](f Facts, name string) (T, error) {
	var zero T
	v, err := f.Value(name)
	if err != nil {
		return zero, err
	}
	t, ok := v.(T)
	if !ok {
		return zero, fmt.Errorf("fact %q is a %T, not a %T", name, v, zero)
	}
	return t, nil
}

// DisplayName returns the title of a fact, or its name if it has no title.
func (f *Fact) DisplayName() string {
	if f.Title != "" {
		return f.Title
	}
	return f.Name
}

// AdoptFact returns the results of an Adopt function for a value that was read. It treats an AbsentError as no value
// and not as an error.
func AdoptFact(v any, err error, from string) (any, string, error) {
	if IsAbsent(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return v, from, nil
}
