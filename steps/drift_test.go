package steps

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster"
)

// unchanged is the verdict on drift of a step with one file.
func (m *machine) unchanged() Result {
	m.t.Helper()
	step := &Step{Name: "one", Actions: []Action{{Name: "a", On: Local, Doer: m.file}}}
	m.env.Side = Local
	return lookForDrift(m.t.Context(), m.env, step)
}

func TestDriftOfAFile(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	want := func(status Status, words string) {
		t.Helper()
		if r := m.unchanged(); r.Status != status || !strings.Contains(r.Found+" "+r.Fix, words) {
			t.Errorf("want %v with %q, got %v: %s; %s", status, words, r.Status, r.Found, r.Fix)
		}
	}
	m.write("/etc/x", "theirs", 0o644)
	want(Skip, "exists yet") // what somebody else has written is for the checks
	m.do()
	want(Pass, "as carrick writes it")
	for _, c := range []struct {
		change func(path string) error
		words  string
	}{
		{func(path string) error { return os.WriteFile(path, []byte("changed"), 0o600) }, "/etc/x was changed"},
		{func(path string) error { return os.WriteFile(path, []byte("changed"), 0o600) }, "--take-over"},
		{func(path string) error { return os.Chmod(path, 0o666) }, "has mode 0666 instead of 0600"},
		{os.Remove, "/etc/x is gone"},
	} {
		path := filepath.Join(m.root, "/etc/x")
		if err := c.change(path); err != nil {
			t.Fatal(err)
		}
		want(Warn, c.words)
		m.env.Apply.TakeOver = true
		m.do()
		want(Pass, "as carrick writes it")
	}
	m.file.Content = func(context.Context, Env) (cluster.Masked, error) { return cluster.Mask("another answer"), nil }
	want(Warn, "/etc/x was changed")
	m.file.Content = func(context.Context, Env) (cluster.Masked, error) { return cluster.Masked{}, os.ErrPermission }
	want(Unknown, "permission")
}
