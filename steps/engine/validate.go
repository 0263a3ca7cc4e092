package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"carrick/steps"
	"carrick/steps/action"
)

var kebab = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Validate returns all mistakes in guides as one error. It finds bad or duplicate names, missing texts, unknown needs,
// cycles, unknown names in assets, and unused assets. assets has one directory per guide.
func Validate(guides []*steps.Guide, assets fs.FS) error {
	var faults []error
	names := map[string]bool{}
	for _, g := range guides {
		if names[g.Name] {
			faults = append(faults, fmt.Errorf("two guides have the name %q", g.Name))
		}
		names[g.Name] = true
		v := &validator{g: g, names: map[string]string{}, used: map[string]bool{}}
		v.guide()
		v.assets(assets)
		faults = append(faults, v.faults...)
	}
	return errors.Join(faults...)
}

type validator struct {
	g      *steps.Guide
	names  map[string]string // maps "check gateway-up" to its step
	used   map[string]bool   // assets that are used
	faults []error
}

func (v *validator) bad(format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf("guide %s: "+format, append([]any{v.g.Name}, args...)...))
}

func (v *validator) guide() {
	if !kebab.MatchString(v.g.Name) {
		v.bad("its name is not lower-kebab-case")
	}
	for _, text := range []struct{ field, value string }{{"Title", v.g.Title}, {"About", v.g.About}, {"Page", v.g.Page}} {
		if text.value == "" {
			v.bad("it has no %s", text.field)
		}
	}
	for _, side := range steps.Sides {
		r := v.g.Sides[side]
		if r.Name == "" || (r.Kind != steps.Cluster && r.Kind != steps.Host) {
			v.bad("side %s has no name or no kind", side)
		}
	}
	if v.g.Sides[steps.Local].Name == v.g.Sides[steps.Remote].Name {
		v.bad("both sides have the name %q", v.g.Sides[steps.Local].Name)
	}
	if len(v.g.Steps) == 0 {
		v.bad("it has no steps")
	}
	for i := range v.g.Steps {
		v.step(&v.g.Steps[i])
	}
	for _, name := range v.g.Undo {
		if a, _ := v.g.Action(name); a == nil {
			v.bad("undo names unknown action %q", name)
		}
	}
	for old, now := range v.g.Renamed {
		if v.names["check "+now] == "" && v.names["question "+now] == "" {
			v.bad("%s was renamed to %s, which is neither a check nor a question", old, now)
		}
		if v.names["check "+old] != "" || v.names["question "+old] != "" {
			v.bad("%s was renamed to %s, but still exists", old, now)
		}
	}
	v.cycles()
}

// once registers the name of a step, check or other item. It reports a malformed name, and a second item of the same
// kind with that name.
func (v *validator) once(kind, name, step string, shape *regexp.Regexp) {
	if !shape.MatchString(name) {
		v.bad("%s %q in step %s: invalid name", kind, name, step)
	}
	key := kind + " " + name
	if at, taken := v.names[key]; taken {
		v.bad("%s is in step %s and in step %s", key, at, step)
	}
	v.names[key] = step
}

var dotted = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*$`)

func (v *validator) step(s *steps.Step) {
	v.once("step", s.Name, s.Name, kebab)
	if s.Title == "" || s.Why == "" {
		v.bad("step %s has no title or no why", s.Name)
	}
	if len(s.Checks) == 0 {
		v.bad("step %s has no check: nothing shows when it is done", s.Name)
	}
	for i := range s.Ask {
		v.question(s, &s.Ask[i])
	}
	for i := range s.Facts {
		f := &s.Facts[i]
		v.once("fact", f.Name+" on "+string(f.On), s.Name, regexp.MustCompile(`^[a-z][a-z0-9-]* on (local|remote|both)$`))
		if f.Learn == nil {
			v.bad("fact %s has no Learn function", f.Name)
		}
	}
	for i := range s.Actions {
		v.action(s, &s.Actions[i])
	}
	for i := range s.Checks {
		v.check(s, &s.Checks[i])
	}
}

func (v *validator) question(s *steps.Step, q *steps.Question) {
	v.once("question", q.Key, s.Name, dotted)
	if q.Title == "" || q.Help == "" {
		v.bad("question %s has no title or no help", q.Key)
	}
	if q.Kind == "" || (q.Kind == steps.Pick && len(q.Of) == 0) {
		v.bad("question %s has no kind or no choices", q.Key)
	}
	if q.Kind == steps.YAML && q.Many {
		v.bad("question %s has Many, which kind YAML does not support", q.Key)
	}
	if act, _ := v.g.Action(q.By); q.By != "" && (act == nil || !q.Secret) {
		v.bad("question %s is not secret, or is set by unknown action %q", q.Key, q.By)
	}
	if q.Secret && q.Default != nil {
		v.bad("question %s is secret and has a default", q.Key)
	}
}

func (v *validator) action(s *steps.Step, a *steps.Action) {
	v.once("action", a.Name, s.Name, kebab)
	if a.Title == "" || a.Doer == nil {
		v.bad("action %s has no title or no Doer", a.Name)
	}
	if a.On != steps.Local && a.On != steps.Remote {
		v.bad("action %s is not on one side", a.Name)
	}
	v.needs("action "+a.Name, a.Needs, a.On)
	v.needs("action "+a.Name, a.First, a.On)
	switch d := a.Doer.(type) {
	case action.Mint:
		if len(d.Keys) == 0 || d.Make == nil {
			v.bad("action %s has no Keys or no Make", a.Name)
		}
	case action.Chart:
		if d.Release == "" || d.Namespace == "" || d.Chart == "" || d.Source == nil || d.Version == nil {
			v.bad("action %s: a Chart requires Release, Namespace, Chart, Source and Version", a.Name)
		}
	case action.Call:
		if d.Preview == nil || d.Make == nil || (d.Revert == nil) != (d.Left == nil) || (d.Revert == nil && d.Keeps == "") {
			v.bad("action %s: a Call requires Preview and Make, and either Left with Revert or Keeps", a.Name)
		}
	}
}

func (v *validator) check(s *steps.Step, c *steps.Check) {
	v.once("check", c.Name, s.Name, kebab)
	if c.Title == "" || c.Why == "" {
		v.bad("check %s has no title or no why", c.Name)
	}
	if c.On != steps.Local && c.On != steps.Remote && c.On != steps.Both {
		v.bad("check %s is on no side", c.Name)
	}
	if (c.Run == nil) == (c.NotChecked == "") {
		v.bad("check %s requires exactly one of Run and NotChecked", c.Name)
	}
	v.mend(c)
	v.needs("check "+c.Name, c.Needs, c.On)
}

// mend reports a FixedBy that names an unknown action. If the name contains ${side}, the action must be on that side.
// Otherwise each side's check would offer the other side's action.
func (v *validator) mend(c *steps.Check) {
	bySide := strings.Contains(c.FixedBy, steps.OwnSide)
	if bySide && c.On != steps.Both {
		v.bad("check %s is on one side and names the action that fixes it by side: %q", c.Name, c.FixedBy)
	}
	for _, side := range steps.Sides {
		if c.FixedBy == "" || !c.On.Covers(side) {
			continue
		}
		switch a, _ := v.g.FixingAction(c, side); {
		case a == nil:
			v.bad("check %s is fixed on the %s by unknown action %q", c.Name, v.g.Sides[side].Name, c.FixedBy)
		case bySide && a.On != side:
			v.bad("check %s is fixed on the %s by action %s, which is on the other side", c.Name, v.g.Sides[side].Name, a.Name)
		}
	}
}

func (v *validator) needs(who string, needs []string, on steps.Side) {
	for _, n := range needs {
		name, peer := strings.CutPrefix(n, "peer/")
		c, _ := v.g.Check(name)
		switch {
		case c == nil:
			v.bad("%s needs unknown check %q", who, n)
		case peer && c.On == on && on != steps.Both:
			v.bad("%s needs %q, but that check is on the same side", who, n)
		case !peer && c.On != steps.Both && on != steps.Both && c.On != on:
			v.bad("%s needs %q, which is on the other side: write peer/%s", who, n, name)
		}
	}
}

// cycles reports checks that depend on themselves through other checks.
func (v *validator) cycles() {
	state := map[steps.Cell]int{} // 1 is in progress, 2 is done
	var visit func(steps.Cell) bool
	visit = func(c steps.Cell) bool {
		if state[c] == 1 {
			return true
		}
		if state[c] == 2 {
			return false
		}
		state[c] = 1
		check, _ := v.g.Check(c.Check)
		for _, n := range check.Needs {
			if need, ok := v.g.CellNamed(n, c.Side); ok && visit(need) {
				return true
			}
		}
		state[c] = 2
		return false
	}
	for _, c := range v.g.Cells() {
		if visit(c) {
			v.bad("check %s depends on itself through other checks", c.Check)
			return
		}
	}
}

func (v *validator) assets(root fs.FS) {
	dir, err := fs.Sub(root, v.g.Name)
	if err != nil {
		v.bad("assets: %v", err)
		return
	}
	for i := range v.g.Steps {
		for j := range v.g.Steps[i].Actions {
			a := &v.g.Steps[i].Actions[j]
			switch d := a.Doer.(type) {
			case interface{ Asset() action.Manifest }:
				all := []action.Manifest{d.Asset()}
				if more, ok := d.(interface{ Also() []action.Manifest }); ok { // manifests that it applies in some cases
					all = append(all, more.Also()...)
				}
				for _, m := range all {
					v.placeholders(dir, a, m.File, m.Values, m.Each != nil)
				}
			case action.Chart:
				for _, text := range []string{d.Release, d.Namespace} {
					v.named(a, "action "+a.Name, text, nil, false)
				}
			case action.Call:
				for _, file := range d.Files {
					v.used[file] = true
					if _, err := fs.Stat(dir, file); err != nil {
						v.bad("action %s reads a missing asset: %v", a.Name, err)
					}
				}
			}
		}
	}
	err = fs.WalkDir(dir, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".yaml") && !v.used[path] {
			v.bad("asset %s is unused", path)
		}
		if errors.Is(err, fs.ErrNotExist) && path == "." {
			return fs.SkipAll // a guide without assets
		}
		return err
	})
	if err != nil {
		v.bad("assets: %v", err)
	}
}

func (v *validator) placeholders(dir fs.FS, a *steps.Action, file string, values action.Values, each bool) {
	v.used[file] = true
	docs, err := action.Documents(dir, file)
	if err != nil {
		v.bad("action %s: %v", a.Name, err)
		return
	}
	if len(docs) == 0 {
		v.bad("action %s: asset %s is empty", a.Name, file)
	}
	for _, doc := range docs {
		walkStrings(doc, func(s string) { v.named(a, "asset "+file, s, values, each) })
	}
}

// named reports placeholders in text that have no value.
func (v *validator) named(a *steps.Action, where, text string, values action.Values, each bool) {
	for _, m := range action.Placeholder.FindAllStringSubmatch(text, -1) {
		if !v.known(a, m[1], m[2], values, each) {
			v.bad("%s: %s is not defined on the %s", where, m[0], v.g.Sides[a.On].Name)
		}
	}
}

func (v *validator) known(a *steps.Action, where, name string, values action.Values, each bool) bool {
	switch where {
	case "own":
		return v.g.Fact(name, a.On) != nil
	case "peer":
		f := v.g.Fact(name, a.On.Peer())
		return f != nil && f.Shared
	case "answers":
		q, _ := v.g.Question(name)
		return q != nil
	case "link":
		return name == "name"
	case "values":
		return values[name] != nil
	case "each":
		return each
	}
	return false
}

func walkStrings(x any, visit func(string)) {
	switch x := x.(type) {
	case map[string]any:
		for k, item := range x {
			visit(k)
			walkStrings(item, visit)
		}
	case []any:
		for _, item := range x {
			walkStrings(item, visit)
		}
	case string:
		visit(x)
	}
}
