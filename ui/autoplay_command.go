package ui

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
)

// settled is how long the script waits for a check to pass after it has run the printed fix.
const settled = 30 * time.Second

// fixRun is a printed fix that the script runs.
type fixRun struct {
	cell steps.Cell
	done time.Time // zero while the command runs
	err  error
}

// fixRanMsg reports that a printed fix has run.
type fixRanMsg struct{ err error }

var (
	// changing matches a kubectl command that changes something without an editor.
	changing = regexp.MustCompile(`^kubectl (?:(?:--context|-n) \S+ )*(?:annotate|apply|certificate|create|delete|label|` +
		`patch|rollout|scale|set|taint|uncordon) `)
	// remark matches a comment at the end of a line.
	remark = regexp.MustCompile(`(?m)\s+# .*$`)
	// blank matches what the user has to fill in, such as NAME.
	blank = regexp.MustCompile(`\b[A-Z]{4,}\b`)
)

// commandsOf returns the commands of a printed fix, without comments. It returns "" if the script cannot run them.
func commandsOf(fix string) string {
	bare := remark.ReplaceAllString(fix, "")
	if !changing.MatchString(bare) || blank.MatchString(bare) || strings.Contains(bare, "--dry-run=server") {
		return ""
	}
	return bare
}

// manually returns the step of the script for a failing cell that no key fixes. If the finding's fix is a command, the
// script runs it and waits for the check. Then the script goes on, even if the check still fails.
func (p *player) manually(s *stepPage, c steps.Cell) move {
	id, ran := s.guide().ID(c), p.ran
	if !p.told["ran/"+id] {
		if !p.told["cause/"+id] {
			return move{id: "cause/" + id, text: p.cause(s, c)}
		}
		line := commandsOf(p.a.live.Board.Verdict(c).Fix)
		if line != "" && p.w.Shell != nil {
			text := "carrick has no action for this check, but prints what to run. The demo runs it: " + oneLine(line)
			return move{id: "ran/" + id, text: text, do: func() tea.Cmd { return p.execute(c, line) }}
		}
		return move{id: "left/" + id, text: p.leftOver(s, c)}
	}
	if ran.err != nil {
		text := fmt.Sprintf("The command failed: %s. The demo goes on.", oneLine(ran.err.Error()))
		return move{id: "left/" + id, text: text}
	}
	if ran.done.IsZero() || p.a.now().Sub(ran.done) < settled {
		return move{id: "ran/wait/" + id, kind: wait, text: "The command has run. Checking …", what: p.unseen}
	}
	return move{id: "left/" + id, text: "The check still fails. The demo goes on."}
}

// execute runs a printed fix.
func (p *player) execute(c steps.Cell, line string) tea.Cmd {
	p.ran = &fixRun{cell: c}
	run, ctx := p.w.Shell, p.a.ctx
	return func() tea.Msg { return fixRanMsg{run(ctx, line)} }
}
