package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/host"
	"carrick/cluster/masked"
	"carrick/steps"
)

// errCut ends a run between two changes.
var errCut = errors.New("cut short")

// cuts allows a host a number of changes. It then ends the run, before or after the next change.
type cuts struct {
	left  int // changes; -1: all
	after bool
}

func (c *cuts) around(_ string, change func() error) error {
	if c.left < 0 {
		return change()
	}
	if c.left == 0 {
		if c.after {
			_ = change()
			c.after = false
		}
		return errCut
	}
	c.left--
	return change()
}

// scene is the initial state of a machine, and the actions to run on it.
type scene struct {
	name   string
	before map[string]string // files, with mode 0644
	real   bool              // not a folder that stands for a machine
	deeds  []steps.Doer      // one after another; the last is the one that is cut
}

func oursFile(text string, mode fs.FileMode) File {
	return File{
		Path: "/etc/x", Mode: mode,
		Content: func(context.Context, steps.Env) (masked.Value, error) { return masked.New(text), nil },
	}
}

func placed(path string, f File) File { f.Path = path; return f }

func scenes() []scene {
	one, two := oursFile("one", 0o644), oursFile("two", 0o600)
	theirs := map[string]string{"/etc/x": "theirs"}
	return []scene{
		{"new", nil, false, []steps.Doer{one}},
		{"new on a machine", nil, true, []steps.Doer{one}},
		{"over theirs", theirs, false, []steps.Doer{one}},
		{"over theirs on a machine", theirs, true, []steps.Doer{one}},
		{"over ours", nil, false, []steps.Doer{one, two}},
		{"over ours and theirs", theirs, true, []steps.Doer{one, two}},
		{"the mode alone", theirs, true, []steps.Doer{oursFile("theirs", 0o600)}},
		{"elsewhere", theirs, false, []steps.Doer{one, placed("/etc/y", one)}},
		{
			"elsewhere over theirs",
			map[string]string{"/etc/x": "theirs", "/etc/y": "theirs, too"},
			true,
			[]steps.Doer{one, placed("/etc/y", two)},
		},
		{
			"a command in a folder", nil, false,
			[]steps.Doer{Command{Title: "starts it", Run: []string{"systemctl", "start", "x"}}},
		},
	}
}

// stage is a scene on a separate machine.
type stage struct {
	t    *testing.T
	env  steps.Env
	cuts *cuts
	root string

	folders bool // they count, too
}

func (s scene) stage(t *testing.T) *stage {
	t.Helper()
	st := &stage{t: t, cuts: &cuts{left: -1}, root: t.TempDir()}
	o := host.Options{Around: st.cuts.around}
	if s.real {
		o.Run = func(context.Context, string, ...string) (string, string, error) { return "", "", nil }
	}
	h, err := host.NewWith(st.root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	st.must(os.MkdirAll(filepath.Join(st.root, "var", "lib"), 0o755)) // as every machine has it
	st.env = steps.Env{Host: h, Link: "l", Action: "a"}
	for path, text := range s.before {
		full := filepath.Join(st.root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

// do does what a session does: it plans, and applies only if the plan has changes.
func (st *stage) do(d steps.Doer) error {
	c, err := d.Plan(st.t.Context(), st.env)
	if err != nil || !changesAnything(c) {
		return err
	}
	for _, it := range c.Items {
		if len(it.Conflicts) > 0 || it.Refused {
			return fmt.Errorf("%s %s: %s %v", it.Verb, it.What, it.Note, it.Conflicts)
		}
	}
	return d.Do(st.t.Context(), st.env, nil)
}

func (st *stage) undo(d steps.Doer) error {
	c, err := d.PlanUndo(st.t.Context(), st.env)
	if err != nil || !changesAnything(c) {
		return err
	}
	return d.Undo(st.t.Context(), st.env, nil)
}

func (st *stage) must(err error) {
	st.t.Helper()
	if err != nil {
		st.t.Fatal(err)
	}
}

// files returns all files of the machine.
func (st *stage) files() map[string]string {
	st.t.Helper()
	out := map[string]string{}
	st.must(filepath.WalkDir(st.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if st.folders {
				out[strings.TrimPrefix(path, st.root)+"/"] = "folder"
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, st.root)] = fmt.Sprintf("%o %s", info.Mode(), b)
		return err
	}))
	return out
}

// cut runs do until its n-th change. It returns false if there are fewer changes.
func (st *stage) cut(n int, after bool, do func() error) bool {
	*st.cuts = cuts{left: n, after: after}
	err := do()
	*st.cuts = cuts{left: -1}
	if err != nil && !errors.Is(err, errCut) {
		st.t.Fatal(err)
	}
	return err != nil
}

// eachCut runs a test of a scene once for each change at which a run may end.
func eachCut(t *testing.T, s scene, test func(st *stage, n int, after bool) bool) {
	t.Helper()
	for _, after := range []bool{false, true} {
		n := 0
		for more := true; more; n++ {
			t.Run(fmt.Sprintf("%s/%d/%v", s.name, n, after), func(t *testing.T) { more = test(s.stage(t), n, after) })
			if n > 20 {
				t.Fatalf("%s: no end of changes", s.name)
			}
		}
		if n < 2 {
			t.Errorf("%s: nothing was cut", s.name)
		}
	}
}

// last runs all actions of a scene except the last, and returns the last.
func (s scene) last(st *stage) steps.Doer {
	for _, d := range s.deeds[:len(s.deeds)-1] {
		st.must(st.do(d))
	}
	return s.deeds[len(s.deeds)-1]
}

func TestADoThatIsCutAnywhereGoesOn(t *testing.T) {
	for _, s := range scenes() {
		whole := s.stage(t)
		before := whole.files()
		whole.must(whole.do(s.last(whole)))
		want := whole.files()
		eachCut(t, s, func(st *stage, n int, after bool) bool {
			last := s.last(st)
			more := st.cut(n, after, func() error { return st.do(last) })
			st.must(st.do(last))
			if d := cmp.Diff(want, st.files(), ignoringWas); d != "" {
				t.Errorf("%s: cut at %d (after: %v), done again (-want +got):\n%s", s.name, n, after, d)
			}
			st.must(st.undo(last))
			if d := cmp.Diff(before, st.files()); d != "" {
				t.Errorf("%s: cut at %d (after: %v), done again and undone (-want +got):\n%s", s.name, n, after, d)
			}
			return more
		})
	}
}

// ignoringWas ignores the field Was of records, which a continued run fills with more content.
var ignoringWas = cmp.Transformer("was", func(files map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		if i := strings.Index(text, `"was":"`); i >= 0 {
			text = text[:i] + text[i+strings.Index(text[i:], ",")+1:]
		}
		out[name] = text
	}
	return out
})

func TestFoldersThatCarrickMadeGoWithTheLastFile(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		st := scene{before: map[string]string{"/etc/theirs": "x"}}.stage(t)
		st.folders = true
		before := st.files()
		files := []steps.Doer{
			placed("/etc/new/a", oursFile("a", 0o600)), placed("/etc/new/deep/b", oursFile("b", 0o600)),
			placed("/etc/c", oursFile("c", 0o600)),
		}
		act := func(i int, do func(steps.Doer) error) {
			st.env.Action = fmt.Sprint("action-", i)
			st.must(do(files[i]))
		}
		for i := range files {
			act(i, st.do)
		}
		act(order[0], st.undo)
		act(order[0], st.do)
		for _, i := range order {
			act(i, st.undo)
		}
		if d := cmp.Diff(before, st.files()); d != "" {
			t.Errorf("undone in the order %v (-want +got):\n%s", order, d)
		}
	}
}

func TestADoThatIsCutAnywhereIsTakenBack(t *testing.T) {
	for _, s := range scenes() {
		before := s.stage(t).files()
		eachCut(t, s, func(st *stage, n int, after bool) bool {
			last := s.last(st)
			more := st.cut(n, after, func() error { return st.do(last) })
			st.must(st.undo(last))
			if d := cmp.Diff(before, st.files()); d != "" {
				t.Errorf("%s: cut at %d (after: %v), undone (-want +got):\n%s", s.name, n, after, d)
			}
			return more
		})
	}
}

func TestAnUndoThatIsCutAnywhereGoesOn(t *testing.T) {
	for _, s := range scenes() {
		before := s.stage(t).files()
		eachCut(t, s, func(st *stage, n int, after bool) bool {
			last := s.last(st)
			st.must(st.do(last))
			done := st.files()
			more := st.cut(n, after, func() error { return st.undo(last) })
			st.must(st.do(last)) // the user changes their mind
			if d := cmp.Diff(done, st.files(), ignoringWas); d != "" && len(s.deeds) == 1 {
				t.Errorf("%s: undo cut at %d (after: %v), done again (-want +got):\n%s", s.name, n, after, d)
			}
			st.cut(n, after, func() error { return st.undo(last) })
			st.must(st.undo(last))
			if d := cmp.Diff(before, st.files()); d != "" {
				t.Errorf("%s: undo cut at %d (after: %v), undone (-want +got):\n%s", s.name, n, after, d)
			}
			return more
		})
	}
}
