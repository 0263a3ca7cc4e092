package action

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/host"
	"carrick/steps"
)

// jobsFolder returns a machine on which uid 1000 owns /home/alice and the folder for jobs in it, and the action that
// closes this folder.
func jobsFolder(t *testing.T, mode fs.FileMode) (CloseFolder, steps.Env, func(string) string) {
	t.Helper()
	h, err := host.NewWith(t.TempDir(), host.Options{
		ByRoot: func() bool { return true },
		Owner:  func(path string) (int, int, bool) { return 1000, 1000, strings.HasPrefix(path, "/home/alice") },
		Run: func(_ context.Context, name string, _ ...string) (string, string, error) {
			t.Errorf("%s was run", name)
			return "", "", nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	at := func(name string) string { return filepath.Join(h.Root, name) }
	for name, mode := range map[string]fs.FileMode{"etc": 0o755, "home/alice": 0o755, "home/alice/jobs": mode} {
		if err := os.MkdirAll(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	path := func(context.Context, steps.Env) (string, error) { return "/home/alice/jobs", nil }
	return CloseFolder{Title: "closes it", Path: path}, steps.Env{Host: h, Link: "l", Action: "a"}, at
}

func hasMode(t *testing.T, name string, want fs.FileMode) {
	t.Helper()
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
		t.Errorf("%s: %v, %v; want mode %o", filepath.Base(name), info, err, want)
	}
}

// swap replaces the folder with a link to /etc, as its owner can.
func swap(t *testing.T, at func(string) string) {
	t.Helper()
	if err := os.Rename(at("home/alice/jobs"), at("home/alice/old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", at("home/alice/jobs")); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderIsClosedAndOpenedAgain(t *testing.T) {
	for mode, back := range map[fs.FileMode]string{0o755: "o+rx", 0o751: "o+x", 0o754: "o+r"} {
		c, env, at := jobsFolder(t, mode)
		if err := c.Do(t.Context(), env, nil); err != nil {
			t.Fatal(err)
		}
		hasMode(t, at("home/alice/jobs"), 0o750)
		if p, err := c.Plan(t.Context(), env); err != nil || p.Items[0].Verb != steps.Leave {
			t.Errorf("%+v, %v", p, err)
		}
		c.Path = func(context.Context, steps.Env) (string, error) { return "", steps.Absent("its configuration is gone") }
		p, err := c.PlanUndo(t.Context(), env)
		if err != nil || len(p.Items) != 1 || p.Items[0].What != "chmod "+back+" /home/alice/jobs" {
			t.Errorf("%+v, %v", p, err)
		}
		if err := c.Undo(t.Context(), env, nil); err != nil {
			t.Fatal(err)
		}
		hasMode(t, at("home/alice/jobs"), mode)
		if p, err := c.PlanUndo(t.Context(), env); err != nil || len(p.Items) != 0 {
			t.Errorf("left: %+v, %v", p, err)
		}
	}
}

// If the folder's owner replaces it with a symbolic link, neither the change nor the undo follows the link.
func TestALinkInPlaceOfTheFolderIsNotFollowed(t *testing.T) {
	c, env, at := jobsFolder(t, 0o755)
	swap(t, at)
	const why = "/home/alice/jobs is a symlink in a directory that uid 1000 can write to"
	if p, err := c.Plan(t.Context(), env); err != nil || !p.Items[0].Refused || !strings.Contains(p.Items[0].Note, why) {
		t.Errorf("%+v, %v", p, err)
	}
	if err := c.Do(t.Context(), env, nil); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("done: %v", err)
	}
	hasMode(t, at("etc"), 0o755)

	c, env, at = jobsFolder(t, 0o755)
	if err := c.Do(t.Context(), env, nil); err != nil {
		t.Fatal(err)
	}
	swap(t, at)
	if err := os.Chmod(at("etc"), 0o750); err != nil {
		t.Fatal(err)
	}
	p, err := c.PlanUndo(t.Context(), env)
	if err != nil || len(p.Items) != 1 || p.Items[0].Verb != steps.Delete || !strings.Contains(p.Items[0].Note, why) {
		t.Errorf("%+v, %v", p, err)
	}
	if err := c.Undo(t.Context(), env, nil); err != nil {
		t.Errorf("undone: %v", err)
	}
	hasMode(t, at("etc"), 0o750)
}

// Undo does not open another folder at the same path, only the folder that was closed.
func TestAnotherFolderIsNotOpened(t *testing.T) {
	c, env, at := jobsFolder(t, 0o755)
	if err := c.Do(t.Context(), env, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(at("home/alice/jobs"), at("home/alice/old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("home/alice/jobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.Undo(t.Context(), env, nil); err != nil {
		t.Fatal(err)
	}
	hasMode(t, at("home/alice/jobs"), 0o700)
}

// An earlier version recorded only the command line.
func TestAFolderThatAnEarlierVersionClosedIsOpened(t *testing.T) {
	c, env, at := jobsFolder(t, 0o750)
	if err := writeRecord(t.Context(), env, record{Run: closing("/home/alice/jobs"), Title: c.Title}); err != nil {
		t.Fatal(err)
	}
	if err := c.Undo(t.Context(), env, nil); err != nil {
		t.Fatal(err)
	}
	hasMode(t, at("home/alice/jobs"), 0o755)
}
