// Package farewell is what carrick says when it is left, on a screen or in
// lines: where everything stands, what is wrong, and how to go on. It prints
// nothing.
package farewell

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// Nothing is said where the user left before a link was opened.
const Nothing = "carrick: left before anything was set up"

// Gone is said at the end of a demo in place of how to go on.
const Gone = "The clusters of the demo are gone, and what was made in them. For your own clusters: carrick"

// Stand is where a session was left.
type Stand struct {
	Guide *steps.Guide
	Link  *linkfile.Link
	Board *engine.Board
	Dir   string // the working directory; "": not known
	// Nothing is known to stand that the link made: there is nothing to take back.
	Nothing bool
}

// Title names what was left.
func (s Stand) Title() string {
	return s.Guide.Title + " · " + oneLine(s.Link.Name())
}

// Behind says that n checks are older than the last change.
func Behind(n int) string {
	checks := fmt.Sprintf("%d checks", n)
	if n == 1 {
		checks = "1 check"
	}
	return checks + " as before the last change: carrick was left before they were looked at again"
}

// Wrong is a cell that fails or could not be looked at.
type Wrong struct {
	Status steps.Status
	Text   string // "provider: the tunnel is up: no handshake"
}

// wrongLines is how many cells are named; check says the rest.
const wrongLines = 8

// Wrongs are the cells that fail, then those that could not be looked at; more
// is how many are not named.
func (s Stand) Wrongs() (list []Wrong, more int) {
	for _, status := range []steps.Status{steps.Fail, steps.Unknown} {
		for _, c := range s.Guide.Cells() {
			r := s.Board.Verdict(c)
			if r.Status != status {
				continue
			}
			if len(list) == wrongLines {
				more++
				continue
			}
			check, _ := s.Guide.Check(c.Check)
			list = append(
				list, Wrong{status, fmt.Sprintf("%s: %s: %s", s.Guide.Sides[c.Side].Name, check.Title, oneLine(r.Found))},
			)
		}
	}
	return list, more
}

// Command is something to run, and what it does.
type Command struct{ Run, What string }

// Commands are how to go on with a link without the wizard, and how to go
// back.
func (s Stand) Commands() []Command {
	path := s.Path()
	out := append(
		s.install(), Command{"carrick " + path, "goes on here"}, Command{"carrick check " + path, "every check, once"},
	)
	if s.Nothing {
		return out
	}
	return append(out, Command{"carrick undo " + path, "takes back what it made"})
}

// install is what is left to do for folders that stand for machines: their files
// have to get to the machine.
func (s Stand) install() []Command {
	var out []Command
	for _, side := range steps.Sides {
		spec := s.Link.Side(side)
		if spec.Host == nil || spec.Host.Root == "/" {
			continue
		}
		root := s.Link.File(spec.Host.Root)
		if _, err := os.Stat(filepath.Join(root, action.InstallList)); err == nil {
			out = append(
				out,
				Command{
					"sh INSTALL",
					"on the " + s.Guide.Sides[side].Name + " itself, in a copy of " + ShortPath(s.Dir, root) +
						": puts the files where they belong",
				},
			)
		}
	}
	return out
}

// Path is the link's file as it is typed from the working directory.
func (s Stand) Path() string { return ShortPath(s.Dir, s.Link.Path) }

// ShortPath is a path as it is typed from a folder.
func ShortPath(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && dir != "" && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

func oneLine(s string) string { return strings.Join(strings.Fields(clean.Text(s)), " ") }
