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

// Env is all that a check, a fact, an action, a default or a condition may
// see: its own side, the facts of the other, and the answers.
type Env struct {
	Side    Side
	Cluster *cluster.Cluster // this side's cluster; nil on a host
	Host    *host.Host       // this side's machine; nil on a cluster
	Own     Facts            // this side's facts
	Peer    Facts            // the other side's facts
	Answers Answers
	Link    string       // name of the link
	Action  string       // name of the action in hand; "" elsewhere
	Assets  fs.FS        // the guide's folder of assets
	Apply   ApplyOptions // what the user allowed, for an action's Do
	// Attended: a person sees what the action says and can do as it asks, such
	// as log in with a code. Where it is false an action must not wait for one:
	// it refuses, and says what to give instead (--secret KEY=@FILE).
	Attended bool
	// Exporting: what is asked for is what belongs into an export. That it stands
	// already, put there by whatever applies exports, is no reason to leave it out.
	Exporting bool

	// Runtime is set by package engine. Guides use the methods of Env instead. It is zero in unit tests.
	Runtime Runtime
}

// Runtime is the part of an Env that package engine sets and package action uses. Any field may be zero.
type Runtime struct {
	Guide    *Guide
	LinkPath string            // the link file; "": it is not saved
	Sides    map[Side]SideInfo // both sides
	API      func() (*web.Client, error)
	Keep     func(key string, v masked.Value) error
	Given    func(key string) bool // reports whether the admin answered the question
	Emptied  func(key string) bool // reports whether the admin left it empty on purpose
	Sound    func() error          // why the default of an answer that was used could not be read
	Cache    *sync.Map             // what actions read once for this Env, by keys of their own; nil: nothing is kept
	Watched  bool                  // a check reads, or a fact for one: what is read is kept current
	Found    []string              // of an undo: what is deleted by its mark alone (engine.Scope.Found)
	Along    []string              // what earlier actions of a planned undo delete with their own objects (Change.Along)
}

// SideInfo is what a side is called.
type SideInfo struct {
	Role, Name, Config string // the guide's word; the context and the kubeconfig
	// Unconfirmed returns why a facts file's key can't be trusted yet; nil: the side is not known by a facts file.
	Unconfirmed func() error
}

// API is the HTTP API that belongs to the set-up. The error says why it is not
// known (AbsentError), or what is wrong with its address.
func (e Env) API() (*web.Client, error) {
	if e.Runtime.API == nil {
		return nil, Absent("the guide has no API")
	}
	return e.Runtime.API()
}

// Keep answers a secret question for the rest of this session, in memory only:
// what an action got for the user, such as a token after a login.
func (e Env) Keep(key string, v masked.Value) error {
	if e.Runtime.Keep == nil {
		return fmt.Errorf("keep %s: there is no session", key)
	}
	return e.Runtime.Keep(key, v)
}

// Sound returns why the default of an answer that was used could not be read;
// nil: all could. The engine looks itself after checks, plans and exports; who
// takes back what was made looks where the answer decides what that is.
func (e Env) Sound() error {
	if e.Runtime.Sound == nil {
		return nil
	}
	return e.Runtime.Sound()
}

// Answered reports whether the admin answered a question, in the link file or for this run: its value is then no
// default.
func (e Env) Answered(key string) bool { return e.Runtime.Given != nil && e.Runtime.Given(key) }

// LeftEmpty reports whether the admin left an optional question empty on purpose: its default does not count.
func (e Env) LeftEmpty(key string) bool { return e.Runtime.Emptied != nil && e.Runtime.Emptied(key) }

// PeerFromFile tells whether the other side is known by the file alone that its admin
// handed over.
func (e Env) PeerFromFile() bool { return e.Runtime.Sides[e.Side.Peer()].Unconfirmed != nil }

// PeerUnconfirmed says that no one has confirmed yet whose facts file the other side is known by: no key is used with
// an address out of it, although none is sent there. nil: the signer is confirmed, or there is no such file.
func (e Env) PeerUnconfirmed() error {
	if err := e.Runtime.Sides[e.Side.Peer()].Unconfirmed; err != nil {
		return err()
	}
	return nil
}

// SideName is the guide's word for this side: "provider".
func (e Env) SideName() string { return e.Runtime.Sides[e.Side].Role }

// Kubectl begins a command on this side, for a fix that works when it is
// pasted: with the kubeconfig and the context that the link names.
func (e Env) Kubectl() string { return e.command(e.Side, "kubectl", " --context ") }

// PeerKubectl begins a command on the other side.
func (e Env) PeerKubectl() string { return e.command(e.Side.Peer(), "kubectl", " --context ") }

// Helm begins a command on this side, as Kubectl does.
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

// LinkFile is the file of this link as a shell takes it, for a fix that works
// when it is pasted: "carrick apply "+e.LinkFile().
func (e Env) LinkFile() string {
	if e.Runtime.LinkPath == "" {
		return e.Link + ".yaml"
	}
	return Quoted(e.Runtime.LinkPath)
}

// ApplyStep is the command that applies steps of this link, for a fix.
func (e Env) ApplyStep(names ...string) string {
	return "carrick apply " + e.LinkFile() + " --step " + strings.Join(names, " --step ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@=+-]+$`)

// Quoted is a word as a shell takes it, for what a fix takes from elsewhere: it
// is to be pasted, and a name out of a cluster must stay one word there.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// PeerName is the guide's word for the other side.
func (e Env) PeerName() string { return e.Runtime.Sides[e.Side.Peer()].Role }

// Fact is a named value that is read on one side. A fact reads; it never
// makes.
type Fact struct {
	Name   string
	Title  string // "the consumer's cluster id"
	On     Side   // Both: each side has its own
	Secret bool   // its value is a masked.Value
	// Shared: the other side uses it (Env.Peer). Only such a fact can be had from
	// the other side, and goes into a file of facts.
	Shared bool
	// Now: it is of the moment. It goes into no file of facts, where it would be old.
	Now bool
	// Learn reads it. What is not there yet is Absent(why), not an error of
	// another kind.
	Learn func(context.Context, Env) (any, error)
}

// Facts are the facts of one side, by name. Using one is recorded like a read,
// so what used it is looked at again when it changes.
type Facts struct {
	Lookup func(name string) (any, error)
}

// AbsentError says that a fact is not there (yet): looked at, and not found.
type AbsentError struct {
	Why      string
	PeerFile bool // it is the other side's, which is not here: its admin has to hand it over
}

func (e *AbsentError) Error() string { return e.Why }

// Absent is the error of a fact that was looked for and is not there.
func Absent(why string, args ...any) error { return &AbsentError{Why: text(why, args)} }

// IsAbsent reports whether an error says that what was looked for is not there: an AbsentError.
func IsAbsent(err error) bool { return errors.As(err, new(*AbsentError)) }

// Value is the fact of that name: a string, bool, int, []string, map or
// masked.Value.
func (f Facts) Value(name string) (any, error) {
	if f.Lookup == nil {
		return nil, Absent("the other side is not known")
	}
	return f.Lookup(name)
}

// Text is a fact that is a string.
func (f Facts) Text(name string) (string, error) { return factAs[string](f, name) }

// List is a fact that is a list of strings.
func (f Facts) List(name string) ([]string, error) { return factAs[[]string](f, name) }

// Masked is a fact that is a secret.
func (f Facts) Masked(name string) (masked.Value, error) { return factAs[masked.Value](f, name) }

// Map is a fact that is a map.
func (f Facts) Map(name string) (map[string]any, error) { return factAs[map[string]any](f, name) }

// Field is the value under a key of a fact that is a map; nil where the fact is not known or has no such key.
func (f Facts) Field(name, key string) any {
	m, _ := factAs[map[string]any](f, name)
	return m[key]
}

// FieldText is a Field that is a string; "" where there is none.
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

// DisplayName is the title of a fact, or its name where it has none.
func (f *Fact) DisplayName() string {
	if f.Title != "" {
		return f.Title
	}
	return f.Name
}

// AdoptFact is what an Adopt returns for a value that was read: nothing where err is an AbsentError.
func AdoptFact(v any, err error, from string) (any, string, error) {
	if IsAbsent(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return v, from, nil
}
