package action

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/host"
	"carrick/steps"
)

func (m *machine) plan() steps.Item {
	m.t.Helper()
	c, err := m.file.Plan(m.t.Context(), m.env)
	if err != nil || len(c.Items) == 0 {
		m.t.Fatal(c, err)
	}
	return c.Items[len(c.Items)-1]
}

func TestAFileThatSomebodyChangedIsAConflict(t *testing.T) {
	m := newMachine(t)
	m.write("/etc/x", "first", 0o600)
	if it := m.plan(); len(it.Conflicts) != 0 || it.Verb != steps.Update || !strings.Contains(it.Note, "/etc/x.before-l") {
		t.Fatalf("what stood there first: %+v", it)
	}
	m.do()
	m.write("/etc/x", "changed", 0o600)
	it := m.plan()
	if len(it.Conflicts) != 1 || it.Verb != steps.Update || !strings.Contains(it.Diff, "-changed") {
		t.Fatalf("%+v", it)
	}
	var conflict *ConflictError
	if err := m.file.Do(t.Context(), m.env, nil); !errors.As(err, &conflict) || m.text("/etc/x") != "changed" {
		t.Fatalf("%v, %q", err, m.text("/etc/x"))
	}
	m.env.Apply.TakeOver = true
	m.do()
	m.undo()
	if m.text("/etc/x") != "first" {
		t.Errorf("what was there before carrick is kept once; it came back as %q", m.text("/etc/x"))
	}
	m.file.Secret = true
	m.do()
	m.write("/etc/x", "changed", 0o600)
	if it := m.plan(); it.Diff != "(hidden)\n" || len(it.Conflicts) != 1 {
		t.Errorf("of a secret: %+v", it)
	}
}

func TestWhatOthersRenewFits(t *testing.T) {
	m := newMachine(t)
	m.file.Fits = func(have []byte) bool { return string(have) == "renewed" }
	m.file.Ours = func(have []byte) bool { return string(have) == "expired" }
	m.do()
	m.write("/etc/x", "renewed", 0o600)
	if it := m.plan(); it.Verb != steps.Leave {
		t.Errorf("one that is renewed: %+v", it)
	}
	m.write("/etc/x", "expired", 0o600)
	if it := m.plan(); it.Verb != steps.Update || len(it.Conflicts) > 0 {
		t.Errorf("one that is expired: %+v", it)
	}
	m.do()
	if m.text("/etc/x") != "ours" {
		t.Errorf("an expired one stays: %q", m.text("/etc/x"))
	}
	m.write("/etc/x", "renewed", 0o600)
	m.undo()
	if left := m.left(); m.text("/etc/x") != "" || len(left) != 0 {
		t.Errorf("%q, left behind: %v", m.text("/etc/x"), left)
	}
}

func TestAModeIsPutRightWithTheContentAsItIs(t *testing.T) {
	m := newMachine(t)
	m.file.Fits = func([]byte) bool { return true }
	m.write("/etc/x", "theirs", 0o644)
	if it := m.plan(); it.Verb != steps.Update || it.Diff != "" || !strings.Contains(it.Note, "0600") {
		t.Errorf("%+v", it)
	}
	m.do()
	if info, err := m.env.Host.Stat(t.Context(), "/etc/x"); err != nil || info.Mode.Perm() != 0o600 ||
		m.text("/etc/x") != "theirs" {
		t.Errorf("%v, %v", info, err)
	}
}

func TestWhatMayNotBeWrittenIsRefusedInThePlan(t *testing.T) {
	for _, d := range []steps.Doer{
		oursFile("one", 0o644),
		Command{Title: "starts it", Run: []string{"systemctl", "start", "x"}, UndoRun: []string{"systemctl", "stop", "x"}},
	} {
		by := false
		h, err := host.NewWith(t.TempDir(), host.Options{
			ByRoot: func() bool { return by },
			Run:    func(context.Context, string, ...string) (string, string, error) { return "", "", nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		env := steps.Env{Host: h, Link: "l", Action: "a"}
		c, err := d.Plan(t.Context(), env)
		if err != nil || !c.Items[0].Refused || !strings.Contains(c.Items[0].Note, "sudo carrick apply l.yaml") {
			t.Errorf("%+v, %v", c, err)
		}
		if err := d.Do(t.Context(), env, nil); err == nil {
			t.Error("it was done all the same")
		}
		if names, _ := h.List(t.Context(), "/"); len(names) != 0 {
			t.Errorf("written: %v", names)
		}
		by = true
		if err := d.Do(t.Context(), env, nil); err != nil {
			t.Fatal(err)
		}
		by = false
		if err := d.Undo(t.Context(), env, nil); err == nil || !strings.Contains(err.Error(), "sudo carrick undo l.yaml") {
			t.Errorf("the undo: %v", err)
		}
		by = true
		if err := d.Undo(t.Context(), env, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAListThatIsNotCarricksIsLeftAlone(t *testing.T) {
	m := newMachine(t)
	m.write("/INSTALL", "read me", 0o644)
	if it := m.plan(); !it.Refused || !strings.Contains(it.Note, "/INSTALL") {
		t.Errorf("%+v", it)
	}
	if err := m.file.Do(t.Context(), m.env, nil); err == nil || m.text("/INSTALL") != "read me" || m.text("/etc/x") != "" {
		t.Errorf("%v, %q", err, m.text("/INSTALL"))
	}
}

// folderGuide has two files and a command. Their order of execution differs from their order in the guide.
func folderGuide() *steps.Guide {
	return &steps.Guide{Steps: []steps.Step{{Name: "s", Actions: []steps.Action{
		{Name: "z", Doer: placed("/etc/it's", oursFile("one", 0o600))},
		{Name: "b", Doer: placed("/etc/b", oursFile("b", 0o755))},
		{Name: "a", Doer: Command{Title: "starts\nthe timer", Run: []string{"systemctl", "enable", "--now", "x y.timer"}}},
	}}}}
}

func TestTheListOfAFolder(t *testing.T) {
	m := newMachine(t)
	m.env.Runtime.Guide = folderGuide()
	actions := m.env.Runtime.Guide.Steps[0].Actions
	each := func(do func(steps.Doer, steps.Env) error, order ...int) {
		t.Helper()
		for _, i := range order {
			env := m.env
			env.Action = actions[i].Name
			if err := do(actions[i].Doer, env); err != nil {
				t.Fatal(err)
			}
		}
	}
	do := func(d steps.Doer, env steps.Env) error { return d.Do(t.Context(), env, nil) }
	undo := func(d steps.Doer, env steps.Env) error { return d.Undo(t.Context(), env, nil) }
	each(do, 2, 1, 0)
	want := installHead + `
# files: owner, mode, from here, to there
install -D -o root -g root -m 0600 './etc/it'\''s' '/etc/it'\''s'
install -D -o root -g root -m 0755 ./etc/b /etc/b

# then, in this order
# starts the timer
systemctl enable --now 'x y.timer'
`
	if got := m.text("/INSTALL"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if out, err := exec.Command("sh", "-n", filepath.Join(m.root, "INSTALL")).CombinedOutput(); err != nil {
		t.Errorf("a shell does not take it: %s", out)
	}
	each(func(d steps.Doer, env steps.Env) error {
		c, err := d.Plan(t.Context(), env)
		if changesAnything(c) {
			t.Errorf("it is planned again: %+v", c.Items)
		}
		return err
	}, 0, 1, 2)
	each(undo, 1)
	if got := m.text("/INSTALL"); strings.Contains(got, "/etc/b") || !strings.Contains(got, "x y.timer") {
		t.Errorf("got:\n%s", got)
	}
	m.write("/INSTALL", installHead+"changed\n", 0o644)
	each(do, 0)
	if got := m.text("/INSTALL"); strings.Contains(got, "changed") {
		t.Errorf("got:\n%s", got)
	}
	each(undo, 2, 0)
	if left := m.left(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestACommandOnAMachine(t *testing.T) {
	var ran []string
	so, sticks := false, true
	h, err := host.NewWith(
		t.TempDir(), host.Options{Run: func(_ context.Context, name string, args ...string) (string, string, error) {
			ran = append(ran, name+" "+strings.Join(args, " "))
			so = sticks && args[0] == "enable"
			return "", "", nil
		}},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	env := steps.Env{Host: h, Link: "l", Action: "a"}
	c := Command{
		Title: "starts the timer", Run: []string{"systemctl", "enable", "x"}, UndoRun: []string{"systemctl", "disable", "x"},
		Done: func(context.Context, steps.Env) (bool, error) { return so, nil },
	}
	plan := func() steps.Item {
		t.Helper()
		p, err := c.Plan(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		return p.Items[0]
	}
	so = true
	if it := plan(); it.Verb != steps.Leave {
		t.Errorf("it is so already: %+v", it)
	}
	if p, err := c.PlanUndo(t.Context(), env); err != nil || len(p.Items) != 0 {
		t.Errorf("carrick did not do it: %+v, %v", p, err)
	}
	so = false
	if it := plan(); it.Verb != steps.Run || it.What != "systemctl enable x" {
		t.Errorf("%+v", it)
	}
	for range 2 {
		if err := c.Do(t.Context(), env, nil); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := c.PlanUndo(t.Context(), env); err != nil || len(p.Items) != 1 ||
		p.Items[0].What != "systemctl disable x" {
		t.Errorf("%+v, %v", p, err)
	}
	for range 2 {
		if err := c.Undo(t.Context(), env, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(ran, "; "); got != "systemctl enable x; systemctl disable x" {
		t.Errorf("ran %s", got)
	}
	if _, err := h.Stat(t.Context(), recordPath(env)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its record stays: %v", err)
	}
	sticks = false
	if err := c.Do(t.Context(), env, nil); err == nil || !strings.Contains(err.Error(), "no effect") {
		t.Errorf("it ran and did nothing: %v", err)
	}
	so = false // another user has undone it meanwhile: nothing runs, and the record is deleted
	ran = nil
	if err := c.Undo(t.Context(), env, nil); err != nil || len(ran) != 0 {
		t.Errorf("%v, ran %v", err, ran)
	}
}

// A command whose effect cannot be checked runs only once, however the first run ended.
func TestACommandThatNobodyCanLookAt(t *testing.T) {
	runs, fails := 0, true
	h, err := host.NewWith(
		t.TempDir(), host.Options{Run: func(context.Context, string, ...string) (string, string, error) {
			if runs++; fails {
				return "", "", errCut
			}
			return "", "", nil
		}},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	env := steps.Env{Host: h, Link: "l", Action: "a"}
	c := Command{Title: "does it", Run: []string{"it"}, UndoRun: []string{"undo-it"}}
	if err := c.Do(t.Context(), env, nil); !errors.Is(err, errCut) {
		t.Errorf("%v", err)
	}
	fails = false
	for range 3 {
		if err := c.Do(t.Context(), env, nil); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 2 {
		t.Errorf("it ran %d times", runs)
	}
}

// An undo names a command that can't be undone, as long as it is in effect.
func TestAnUndoNamesACommandThatStays(t *testing.T) {
	h, err := host.NewWith(
		t.TempDir(),
		host.Options{Run: func(context.Context, string, ...string) (string, string, error) { return "", "", nil }},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	so := true
	c := Command{
		Title: "writes it", Run: []string{"write-it"}, Stays: "run it again",
		Done: func(context.Context, steps.Env) (bool, error) { return so, nil },
	}
	env := steps.Env{Host: h, Link: "l", Action: "a"}
	p, err := c.PlanUndo(t.Context(), env)
	if err != nil || len(p.Items) != 1 || p.Items[0].Verb != steps.Leave || p.Items[0].Note != "run it again" {
		t.Errorf("%+v, %v", p, err)
	}
	so = false
	if p, err := c.PlanUndo(t.Context(), env); err != nil || len(p.Items) != 0 {
		t.Errorf("it is not so any more: %+v, %v", p, err)
	}
	if err := c.Undo(t.Context(), env, nil); err != nil {
		t.Error(err)
	}
}
