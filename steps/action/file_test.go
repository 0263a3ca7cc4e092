package action

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/host"
	"carrick/cluster/masked"
	"carrick/steps"
)

// machine is a folder that represents a host, with one file that an action writes.
type machine struct {
	t    *testing.T
	env  steps.Env
	root string
	file File
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	h, err := host.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	m := &machine{t: t, env: steps.Env{Host: h, Link: "l", Action: "a"}, root: h.Root}
	m.file = File{
		Path: "/etc/x", Mode: 0o600,
		Content: func(context.Context, steps.Env) (masked.Value, error) { return masked.New("ours"), nil },
	}
	return m
}

func (m *machine) write(path, text string, mode fs.FileMode) {
	m.t.Helper()
	path = filepath.Join(m.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

// text returns the content of a file, or "" if it does not exist.
func (m *machine) text(path string) string {
	b, err := os.ReadFile(filepath.Join(m.root, path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
	return string(b)
}

func (m *machine) do() {
	m.t.Helper()
	if err := m.file.Do(m.t.Context(), m.env, nil); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) undo() {
	m.t.Helper()
	if err := m.file.Undo(m.t.Context(), m.env, nil); err != nil {
		m.t.Fatal(err)
	}
}

// left returns all files of the machine except for the written file.
func (m *machine) left() []string {
	m.t.Helper()
	var out []string
	err := filepath.WalkDir(m.root, func(path string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(m.root, path); err == nil && !d.IsDir() && rel != "etc/x" {
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

func TestAFileComesBackWithItsMode(t *testing.T) {
	m := newMachine(t)
	m.write("/etc/x", "theirs", 0o644)
	m.do()
	if m.text("/etc/x") != "ours" {
		t.Fatal("not written")
	}
	m.undo()
	info, err := os.Stat(filepath.Join(m.root, "etc/x"))
	if err != nil || m.text("/etc/x") != "theirs" || info.Mode().Perm() != 0o644 {
		t.Errorf("%q, %v, %v", m.text("/etc/x"), info.Mode(), err)
	}
	if left := m.left(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An interrupted undo can continue, and a later Do still saves the existing file. The owner of the folder may replace
// the saved copy with a link to a file of root.
func TestOnlyWhatWasKeptIsPutBack(t *testing.T) {
	m := newMachine(t)
	m.write("/etc/x", "theirs", 0o644)
	m.write("/etc/shadow", "secret", 0o600)
	m.do()
	kept := filepath.Join(m.root, "/etc/x.before-l")
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("shadow", kept); err != nil {
		t.Fatal(err)
	}
	err := m.file.Undo(t.Context(), m.env, nil)
	if err == nil || !strings.Contains(err.Error(), "/etc/x.before-l was changed since carrick saved it") ||
		m.text("/etc/x") != "ours" {
		t.Errorf("%v, %q", err, m.text("/etc/x"))
	}
}

func TestAnUndoThatWasCutShortGoesOn(t *testing.T) {
	for name, cut := range map[string]func(*machine){
		"after the file was put back": func(m *machine) { m.write("/etc/x", "theirs", 0o644) },
		"after what was kept had gone": func(m *machine) {
			m.write("/etc/x", "theirs", 0o644)
			if err := os.Remove(filepath.Join(m.root, "etc/x.before-l")); err != nil {
				m.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.write("/etc/x", "theirs", 0o644)
			m.do()
			cut(m)
			m.undo()
			if left := m.left(); m.text("/etc/x") != "theirs" || len(left) != 0 {
				t.Errorf("%q, left behind: %v", m.text("/etc/x"), left)
			}
		})
	}
	t.Run("after the new file was removed", func(t *testing.T) {
		m := newMachine(t)
		m.do()
		if err := os.Remove(filepath.Join(m.root, "etc/x")); err != nil {
			t.Fatal(err)
		}
		m.undo()
		if left := m.left(); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// A Do that ended after writing its record has not written the file.
func TestADoThatWasCutShortIsTakenBack(t *testing.T) {
	m := newMachine(t)
	m.write("/etc/x", "theirs", 0o644)
	m.do()
	m.write("/etc/x", "theirs", 0o644)
	m.do()
	m.undo()
	if left := m.left(); m.text("/etc/x") != "theirs" || len(left) != 0 {
		t.Errorf("%q, left behind: %v", m.text("/etc/x"), left)
	}
}

// An undo deletes a file that carrick created, even if carrick has since overwritten another user's changes to it.
func TestAFileThatWasTakenOverIsDeleted(t *testing.T) {
	m := newMachine(t)
	m.do()
	m.write("/etc/x", "ours, and more", 0o644)
	m.env.Apply.TakeOver = true
	m.do()
	m.undo()
	if left := m.left(); m.text("/etc/x") != "" || len(left) != 0 {
		t.Errorf("it holds %q; left behind: %v", m.text("/etc/x"), left)
	}
}

func TestAnUndoNamesAFileThatWasChanged(t *testing.T) {
	m := newMachine(t)
	m.do()
	m.write("/etc/x", "ours, and more", 0o600)
	c, err := m.file.PlanUndo(t.Context(), m.env)
	if err != nil || len(c.Items) != 1 {
		t.Fatal(c, err)
	}
	if left := c.Items[0]; left.Verb != steps.Leave || left.What != "/etc/x" ||
		!strings.Contains(left.Note, "was changed by another user") {
		t.Errorf("%+v", c)
	}
	m.undo()
	if m.text("/etc/x") != "ours, and more" {
		t.Errorf("it holds %q", m.text("/etc/x"))
	}
}

func TestAFileThatChangedSinceIsAnotherPlan(t *testing.T) {
	m := newMachine(t)
	plan := func() steps.Change {
		c, err := m.file.Plan(t.Context(), m.env)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	m.write("/etc/x", "one", 0o644)
	confirmed := plan()
	m.write("/etc/x", "two", 0o644)
	if confirmed.Items[0].Hash == plan().Items[0].Hash {
		t.Error("what would be overwritten is not what was confirmed")
	}
}

func changesAnything(c steps.Change) bool {
	return slices.ContainsFunc(c.Items, func(it steps.Item) bool { return it.Verb.Changes() })
}
