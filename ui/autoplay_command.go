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
	line string
	done time.Time // zero while the command runs
	err  error
}

// fixRanMsg reports that a printed fix has run.
type fixRanMsg struct {
	run *fixRun
	err error
}

var (
	// changing matches a kubectl command that changes something without an editor.
	changing = regexp.MustCompile(`^kubectl (?:(?:--context|-n) \S+ )*(?:annotate|apply|certificate|create|delete|label|` +
		`patch|rollout|scale|set|taint|uncordon) `)
	// remark matches a comment at the end of a line.
	remark = regexp.MustCompile(`(?m)\s+# .*$`)
	// onward matches the part of a fix that f runs once the rest has run.
	onward = regexp.MustCompile(` && carrick apply [^&\n]*$`)
	// blank matches what the user has to fill in, such as NAME.
	blank = regexp.MustCompile(`\b[A-Z][A-Z_]{3,}\b`)
)

// commandsOf returns the commands of a printed fix, without comments. It returns "" if the script cannot run all of
// them. A command can read its input from the lines below it, as in kubectl apply -f - <<'EOF'.
func commandsOf(fix string) string {
	bare := onward.ReplaceAllString(remark.ReplaceAllString(fix, ""), "")
	if blank.MatchString(bare) || strings.Contains(bare, "--dry-run=server") {
		return ""
	}
	lines := strings.Split(bare, "\n")
	if strings.Contains(lines[0], "<<") {
		lines = lines[:1]
	}
	for _, line := range lines {
		if !changing.MatchString(line) {
			return ""
		}
	}
	return bare
}

// manually returns the step of the script for a failing cell that no key fixes. If the finding's fix is a command, the
// script runs it and waits for the check. Then the script goes on, even if the check still fails.
func (p *player) manually(s *stepPage, c steps.Cell) move {
	id := s.guide().ID(c)
	run := p.ran[c]
	if run == nil || !p.told["ran/"+id] {
		return p.announce(s, c)
	}
	switch {
	case run.done.IsZero():
		return move{id: "ran/busy/" + id, kind: wait, text: "The command is running …", what: p.unseen}
	case run.err != nil:
		text := fmt.Sprintf("The command failed: %s. The demo goes on.", oneLine(run.err.Error()))
		return move{id: "left/" + id, text: text}
	case p.a.now().Sub(run.done) < settled:
		return move{id: "ran/wait/" + id, kind: wait, text: "The command has run. Checking …", what: p.unseen}
	}
	return move{id: "left/" + id, text: "The check still fails. The demo goes on."}
}

// announce names the cause of a failing cell, and then the command that the script runs.
func (p *player) announce(s *stepPage, c steps.Cell) move {
	id := s.guide().ID(c)
	if !p.told["cause/"+id] {
		return move{id: "cause/" + id, text: p.cause(s, c)}
	}
	if p.ran[c] == nil || p.move.id != "ran/"+id { // what is announced is what runs
		line := commandsOf(p.a.live.Board.Verdict(c).Fix)
		if line == "" || p.w.Shell == nil {
			return move{id: "left/" + id, text: p.leftOver(s, c)}
		}
		p.ran[c] = &fixRun{line: line}
	}
	text := "carrick has no action for this check, but prints what to run."
	if p.told["fix/"+id] {
		text = "f did not fix this check. carrick prints what to run."
	}
	return move{
		id: "ran/" + id, text: text + " The demo runs it: " + oneLine(p.ran[c].line),
		do: func() tea.Cmd { return p.execute(p.ran[c]) },
	}
}

// execute runs a printed fix.
func (p *player) execute(r *fixRun) tea.Cmd {
	run, ctx := p.w.Shell, p.a.ctx
	return func() tea.Msg { return fixRanMsg{r, run(ctx, r.line)} }
}
