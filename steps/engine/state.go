package engine

import (
	"fmt"
	"slices"
	"strings"

	"carrick/steps"
)

// State is a verdict as carrick shows it. It distinguishes what is broken from what is not done yet, and the reasons of
// skips. The zero value is Checking.
type State int

// The states. The comment of each names its statuses.
const (
	Checking   State = iota // pending
	OK                      // pass
	Warning                 // warn
	Failed                  // fail: something is broken, was deleted, or has to be fixed manually
	ToDo                    // fail: an action of the guide has not run yet
	Unknown                 // unknown
	InProgress              // waiting
	Later                   // skip: blocked by a check that does not pass yet
	Off                     // skip: not applicable with the current answers
	Skipped                 // skip, for any other reason
)

// States lists all states in the order in which counts show them.
var States = []State{OK, Failed, Unknown, Warning, InProgress, ToDo, Checking, Later, Skipped, Off}

// stateText is how a state looks: two glyphs of one column each, the word in a table, and the word in counts.
type stateText struct{ glyph, ascii, word, counted string }

var stateTexts = map[State]stateText{
	Checking:   {"◌", ".", "checking", "checking"},
	OK:         {"✓", "+", "ok", "ok"},
	Warning:    {"!", "!", "warn", "warning"},
	Failed:     {"✗", "x", "FAIL", "failed"},
	ToDo:       {"○", "o", "to do", "to do"},
	Unknown:    {"?", "?", "unknown", "unknown"},
	InProgress: {"◌", ".", "waiting", "waiting"},
	Later:      {"·", "-", "later", "later"},
	Off:        {"–", "-", "off", "off"},
	Skipped:    {"-", "-", "skip", "skipped"},
}

// Glyph returns the symbol of the state. It is one column wide in all locales.
func (s State) Glyph() string { return stateTexts[s].glyph }

// ASCII returns the symbol of the state for terminals without Unicode.
func (s State) ASCII() string { return stateTexts[s].ascii }

// String returns the word for the state in tables, such as "ok" or "to do".
func (s State) String() string { return stateTexts[s].word }

// stateOf maps a status to its state. Only a board can tell ToDo from Failed and Later from Skipped.
func stateOf(r steps.Result) State {
	switch r.Status {
	case steps.Pass:
		return OK
	case steps.Warn:
		return Warning
	case steps.Fail:
		return Failed
	case steps.Unknown:
		return Unknown
	case steps.Waiting:
		return InProgress
	case steps.Skip:
		if r.Found == steps.NotAsked {
			return Off
		}
		return Skipped
	}
	return Checking
}

// State returns the state of a cell.
func (b *Board) State(c steps.Cell) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state(c)
}

func (b *Board) state(c steps.Cell) State {
	j := b.judge(c)
	s := stateOf(j.verdict)
	switch {
	case (s == Failed || s == Unknown) && b.todo()[c], s == Failed && b.underway(c):
		return ToDo
	case s == Skipped && j.masked && b.awaited(j.cause):
		return Later
	}
	return s
}

// awaited reports whether a cell that blocks others can pass later. A cell that is skipped for good can't.
func (b *Board) awaited(c steps.Cell) bool { return b.judge(c).verdict.Status != steps.Skip }

// todo returns the failures that no action of the guide has handled yet. These are trials that have not run, and
// failures whose action this link has not run, if no action of the same step or of a later step is completed. An object
// that does not exist is a failure, too, if the action that creates it also fixes a real failure.
func (b *Board) todo() map[steps.Cell]bool {
	if b.toDo != nil {
		return b.toDo
	}
	b.toDo = map[steps.Cell]bool{}
	done, mends := b.done(), b.fixesOthers()
	for i := range b.guide.Steps {
		for _, c := range b.guide.CellsOf(i) {
			j := b.judge(c)
			r := j.verdict
			if !j.masked && (r.NotTried || i >= done && b.untouched(c) && (!r.Undone || !mends[b.fixer(c)])) {
				b.toDo[c] = true
			}
		}
	}
	return b.toDo
}

// untouched reports whether a cell fails because the action that fixes it has not run. The caller must hold b.mu.
func (b *Board) untouched(c steps.Cell) bool {
	r := b.judge(c).verdict
	if r.Status != steps.Fail || r.Made {
		return false
	}
	if r.Undone {
		return true
	}
	check, _ := b.guide.Check(c.Check)
	act, _ := b.guide.Offer(check, c.Side, r)
	return act != nil && leavesBehind(act.Doer)
}

// Counts is the number of cells per state.
type Counts struct{ of [Skipped + 1]int }

// Count counts the states of a step. If step is "", it counts those of all steps.
func (b *Board) Count(step string) Counts {
	return b.CountOf(slices.DeleteFunc(b.guide.Cells(), func(c steps.Cell) bool { return step != "" && c.Step != step }))
}

// CountOf counts the states of the given cells.
func (b *Board) CountOf(cells []steps.Cell) Counts {
	var n Counts
	for _, c := range cells {
		n.add(b.State(c))
	}
	return n
}

// Of returns the number of cells with state s.
func (n Counts) Of(s State) int { return n.of[s] }

func (n *Counts) add(s State) { n.of[s]++ }

// Green reports whether no cell is failed, to do, unknown, waiting or not checked yet.
func (n Counts) Green() bool {
	return n.Of(Failed)+n.Of(ToDo)+n.Of(Unknown)+n.Of(InProgress)+n.Of(Checking) == 0
}

// StateCount is the count of one state.
type StateCount struct {
	State State
	N     int
}

// String returns the count with its word, such as "11 ok" or "2 warnings".
func (n StateCount) String() string {
	text := fmt.Sprintf("%d %s", n.N, stateTexts[n.State].counted)
	if n.State == Warning && n.N != 1 {
		text += "s"
	}
	return text
}

// List returns the counts that are not zero, in the order of States. It leaves out what an answer turns off.
func (n Counts) List() []StateCount {
	var out []StateCount
	for _, s := range States {
		if n.Of(s) > 0 && s != Off {
			out = append(out, StateCount{s, n.Of(s)})
		}
	}
	return out
}

// String returns the counts as shown on screen, such as "11 ok · 1 failed · 4 to do".
func (n Counts) String() string {
	var parts []string
	for _, one := range n.List() {
		parts = append(parts, one.String())
	}
	return strings.Join(parts, " · ")
}
