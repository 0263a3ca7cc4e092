// Package farewell composes the closing message of both wizards. The message contains the state of each step, the
// failures, and the next commands. The package prints nothing.
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

// Nothing is the message if the user quit before a link was open.
const Nothing = "carrick: quit before anything was set up"

// Gone is the closing message at the end of a demo. It replaces the commands to continue.
const Gone = "The clusters of the demo are deleted. For your own clusters, run: carrick"

// Stand is the state of a session when the user left it.
type Stand struct {
	Guide *steps.Guide
	Link  *linkfile.Link
	Board *engine.Board
	Dir   string // the working directory; "" if unknown
	// Nothing is true if the link has created nothing, so that there is nothing to undo.
	Nothing bool
}

// Title names the guide and the link.
func (s Stand) Title() string {
	return s.Guide.Title + " · " + oneLine(s.Link.Name())
}

// Behind returns the message that n checks have not run since the last change.
func Behind(n int) string {
	checks := fmt.Sprintf("%d checks", n)
	if n == 1 {
		checks = "1 check"
	}
	return checks + " not run since the last change, because carrick quit first"
}

// Wrong is a cell that fails, is unknown or is to do.
type Wrong struct {
	State engine.State
	Text  string // such as "provider: the tunnel is up: no handshake"
}

// wrongLines is the maximum number of cells that are named. The command carrick check lists all of them.
const wrongLines = 8

// Wrongs returns the cells that fail, followed by those that are unknown and those that are to do. more is the number
// of omitted cells.
func (s Stand) Wrongs() (list []Wrong, more int) {
	for _, state := range []engine.State{engine.Failed, engine.Unknown, engine.ToDo} {
		for _, c := range s.Guide.Cells() {
			if s.Board.State(c) != state {
				continue
			}
			if len(list) == wrongLines {
				more++
				continue
			}
			check, _ := s.Guide.Check(c.Check)
			role, found := s.Guide.Sides[c.Side].Name, oneLine(s.Board.Verdict(c).Found)
			list = append(list, Wrong{state, fmt.Sprintf("%s: %s: %s", role, check.Title, found)})
		}
	}
	return list, more
}

// Command is a shell command with its description.
type Command struct{ Run, What string }

// Commands returns commands for working with a link outside the wizard, and for undoing it.
func (s Stand) Commands() []Command {
	path := s.Path()
	out := append(
		s.install(), Command{"carrick " + path, "continues here"}, Command{"carrick check " + path, "runs every check once"},
	)
	if s.Nothing {
		return out
	}
	return append(out, Command{"carrick undo " + path, "undoes the changes that the link made"})
}

// install returns a command for each side whose root directory represents another machine. The user must copy the
// directory to that machine and run the command there.
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
					"on the " + s.Guide.Sides[side].Name + " , in a copy of " + ShortPath(s.Dir, root) +
						": installs the files",
				},
			)
		}
	}
	return out
}

// Path returns the path of the link file relative to the working directory.
func (s Stand) Path() string { return ShortPath(s.Dir, s.Link.Path) }

// ShortPath returns path relative to dir if path is inside dir, and otherwise unchanged.
func ShortPath(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && dir != "" && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

func oneLine(s string) string { return strings.Join(strings.Fields(clean.Text(s)), " ") }
