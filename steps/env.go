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

// Env is all that a check, a fact, an action, a default or a condition can see: its own side, the other side's facts,
// and the answers.
type Env struct {
	Side    Side
	Cluster *cluster.Cluster // this side's cluster; nil on a host
	Host    *host.Host       // this side's machine; nil on a cluster
	Own     Facts            // this side's facts
	Peer    Facts            // the other side's facts
	Answers Answers
	Link    string       // name of the link
	Action  string       // name of the current action; "" elsewhere
	Assets  fs.FS        // the guide's folder of assets
	Apply   ApplyOptions // what the user allowed, for an action's Do
	// Attended reports whether a person sees the action's messages and can do what it asks, such as to log in with a code.
	// If it is false, an action must not wait for a person: it returns an error that says what to provide instead
	// (--secret KEY=@FILE).
	Attended bool
	// Exporting is set while an export is rendered. An object that already exists, for example because a GitOps tool
	// applied an earlier export, is then still included.
	Exporting bool

	// Runtime is set by package engine. Guides use the methods of Env instead. It is zero in unit tests.
	Runtime Runtime
}

// Runtime is the part of an Env that package engine sets and package action uses. Any field may be zero.
type Runtime struct {
	Guide    *Guide
	LinkPath string            // the link file; "": not saved
	Sides    map[Side]SideInfo // both sides
	API      func() (*web.Client, error)
	Keep     func(key string, v masked.Value) error
	Given    func(key string) bool // reports whether the admin answered the question
	Emptied  func(key string) bool // reports whether the admin deliberately left the question empty
	Sound    func() error          // returns the error if a default that was used as an answer could not be read
	Cache    *sync.Map             // what actions have read for this Env, by their own keys; nil: nothing is cached
	Watched  bool                  // set for checks and the facts they use: their reads are kept current
	Found    []string              // in an undo: objects to delete by their marks alone (engine.Scope.Found)
	Along    []string              // in a planned undo: what disappears because of earlier actions (Change.Along)
}

// SideInfo contains the names of a side.
type SideInfo struct {
	Role, Name, Config string // the guide's name of the side, the context, the kubeconfig
	// Unconfirmed returns an error while the signer of the side's facts file is not confirmed. It is nil if the side is
	// not known from a facts file.
	Unconfirmed func() error
}

// API returns a client of the HTTP API that belongs to the set-up. The error says why its address is not known
// (AbsentError) or what is wrong with it.
func (e Env) API() (*web.Client, error) {
	if e.Runtime.API == nil {
		return nil, Absent("the guide has no API")
	}
	return e.Runtime.API()
}

// Keep stores the answer to a secret question in memory for the rest of this session, such as a token that an action
// obtained for the user by a login.
func (e Env) Keep(key string, v masked.Value) error {
	if e.Runtime.Keep == nil {
		return fmt.Errorf("keep %s: there is no session", key)
	}
	return e.Runtime.Keep(key, v)
}

// Sound returns the error if a default that was used as an answer could not be read, or nil. The engine calls it after
// checks, plans and exports. An Undo must call it where an answer decides what is deleted.
func (e Env) Sound() error {
	if e.Runtime.Sound == nil {
		return nil
	}
	return e.Runtime.Sound()
}

// Answered reports whether the admin answered a question, in the link file or for this run. Its value is then not a
// default.
func (e Env) Answered(key string) bool { return e.Runtime.Given != nil && e.Runtime.Given(key) }

// LeftEmpty reports whether the admin deliberately left an optional question empty. Its default then does not apply.
func (e Env) LeftEmpty(key string) bool { return e.Runtime.Emptied != nil && e.Runtime.Emptied(key) }

// PeerFromFile reports whether the other side is known only from its admin's facts file.
func (e Env) PeerFromFile() bool { return e.Runtime.Sides[e.Side.Peer()].Unconfirmed != nil }

// PeerUnconfirmed returns an error if the signer of the other side's facts file is not confirmed yet. A key must not be
// used with an address from such a file, even where the key itself is not sent. PeerUnconfirmed returns nil if the
// signer is confirmed or there is no such file.
func (e Env) PeerUnconfirmed() error {
	if err := e.Runtime.Sides[e.Side.Peer()].Unconfirmed; err != nil {
		return err()
	}
	return nil
}

// SideName returns the guide's name of this side, such as "provider".
func (e Env) SideName() string { return e.Runtime.Sides[e.Side].Role }

// Kubectl returns the beginning of a kubectl command for this side, with the kubeconfig and context that the link
// names, for a fix that can be pasted.
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

// LinkFile returns the path of this link's file, quoted for a shell, for a fix that can be pasted: "carrick apply
// "+e.LinkFile().
func (e Env) LinkFile() string {
	if e.Runtime.LinkPath == "" {
		return e.Link + ".yaml"
	}
	return Quoted(e.Runtime.LinkPath)
}

// ApplyStep returns the command that applies the named steps of this link, for a fix.
func (e Env) ApplyStep(names ...string) string {
	return "carrick apply " + e.LinkFile() + " --step " + strings.Join(names, " --step ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@=+-]+$`)

// Quoted returns word quoted for a POSIX shell. A fix is pasted into a shell, and a name from a cluster must remain one
// word there.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// PeerName returns the guide's name of the other side.
func (e Env) PeerName() string { return e.Runtime.Sides[e.Side.Peer()].Role }

// Fact is a named value that is read from one side. A fact only reads; it creates nothing.
type Fact struct {
	Name   string
	Title  string // "the consumer's cluster id"
	On     Side   // Both: each side has its own
	Secret bool   // its value is a masked.Value
	// Shared means that the other side uses the fact (Env.Peer). Only shared facts are available to the other side and are
	// written into a facts file.
	Shared bool
	// Now marks a value that is valid only for a short time. It is not written into a facts file, where it would be
	// outdated.
	Now bool
	// Learn reads the value. If it does not exist yet, Learn returns Absent(why) and no other error.
	Learn func(context.Context, Env) (any, error)
}

// Facts are the facts of one side, by name. Using a fact is recorded like a read, so a check that used it runs again
// when it changes.
type Facts struct {
	Lookup func(name string) (any, error)
}

// AbsentError says that a fact was looked up and does not exist (yet).
type AbsentError struct {
	Why      string
	PeerFile bool // the fact is the other side's, and its admin must provide it in a facts file
}

func (e *AbsentError) Error() string { return e.Why }

// Absent returns an AbsentError for a fact that does not exist.
func Absent(why string, args ...any) error { return &AbsentError{Why: text(why, args)} }

// IsAbsent reports whether err is an AbsentError.
func IsAbsent(err error) bool { return errors.As(err, new(*AbsentError)) }

// Value returns the fact of that name: a string, bool, int, []string, map or masked.Value.
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

// Field returns the value of a key of a fact that is a map, or nil if the fact is not known or has no such key.
func (f Facts) Field(name, key string) any {
	m, _ := factAs[map[string]any](f, name)
	return m[key]
}

// FieldText returns a Field that is a string, or "" if there is none.
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

// AdoptFact returns the results of an Adopt function for a value that was read. An AbsentError counts as no value, not
// as an error.
func AdoptFact(v any, err error, from string) (any, string, error) {
	if IsAbsent(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return v, from, nil
}
