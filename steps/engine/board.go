package engine

import (
	"fmt"
	"slices"
	"sync"

	"carrick/steps"
	"carrick/steps/action"
)

// Board contains the latest result of every cell. It computes the verdicts from them.
type Board struct {
	guide   *steps.Guide
	mu      sync.Mutex
	results map[steps.Cell]steps.Result
	known   map[steps.Cell]judged // cached verdicts for the current results
	toDo    map[steps.Cell]bool   // cached result of todo for the current results; nil if not computed
	running *Plan                 // the plan that is being applied or undone, or nil
}

type judged struct {
	verdict steps.Result
	cause   steps.Cell // the root cause, if the verdict is a skip because of another cell
	masked  bool
}

// NewBoard returns a board without results.
func NewBoard(g *steps.Guide) *Board {
	return &Board{guide: g, results: map[steps.Cell]steps.Result{}, known: map[steps.Cell]judged{}}
}

// Put stores the result of a cell.
func (b *Board) Put(c steps.Cell, r steps.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[c] = r
	clear(b.known)
	b.toDo = nil
}

// Verdict returns the verdict on a cell. If a check that the cell depends on does not pass, the verdict is a skip that
// names the root cause.
func (b *Board) Verdict(c steps.Cell) steps.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.judge(c).verdict
}

// Cause returns the root cause of a masked verdict. This is the first of its direct and indirect needs that failed
// independently. If the verdict is not masked, the bool is false.
func (b *Board) Cause(c steps.Cell) (steps.Cell, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.judge(c)
	return j.cause, j.masked
}

// own returns a cell's own result, regardless of its needs.
func (b *Board) own(c steps.Cell) steps.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.results[c]
}

// SetRunning sets the plan that is being applied or undone. nil means that it has ended. Until then, failures that the
// plan's actions fix are to do and not broken. During an undo, so are all failures in the plan's steps.
func (b *Board) SetRunning(p *Plan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = p
}

// underway reports whether the running plan contains the action that fixes a cell, or undoes the cell's step.
func (b *Board) underway(c steps.Cell) bool {
	if b.running == nil {
		return false
	}
	by := b.fixing(c)
	return slices.ContainsFunc(b.running.Actions, func(p Planned) bool {
		return p.Action == by || b.running.Undo && p.Step == c.Step
	})
}

// fixing returns the name of the action that fixes a cell with its latest result, or "".
func (b *Board) fixing(c steps.Cell) string {
	check, _ := b.guide.Check(c.Check)
	act, _ := b.guide.Offer(check, c.Side, b.results[c])
	if act == nil {
		return ""
	}
	return act.Name
}

// judge caches the verdict until a result changes.
func (b *Board) judge(c steps.Cell) judged {
	if j, ok := b.known[c]; ok {
		return j
	}
	j := judged{cause: c}
	need, masked := b.unmet(c)
	if masked {
		j.cause, j.masked = need, true
		if deeper := b.judge(need); deeper.masked {
			j.cause = deeper.cause
		}
	}
	j.verdict = b.mask(c, need, j)
	b.known[c] = j
	return j
}

// mask returns the verdict of a cell that is blocked. need is the first need of the cell that does not hold.
func (b *Board) mask(c, need steps.Cell, j judged) steps.Result {
	r := b.results[c]
	if r.Status == steps.Fail && action.IsDrift(c.Check) && b.reported(c) {
		r.Status = steps.Warn // the other check is the cause
	}
	switch {
	case r.Status == steps.Skip, r.Status == steps.Pending, !j.masked:
		return r
	case b.judge(need).verdict.Status == steps.Pending:
		return steps.Result{}
	}
	v := b.judge(j.cause).verdict
	if r.Status == steps.Unknown && v.Status == steps.Unknown {
		return r // a side that does not answer makes cells unknown, not skipped
	}
	return steps.Result{Status: steps.Skip, Found: b.behind(c, j.cause, v)}
}

// reported reports whether another check fails, too, and is fixed by the same action as a drift check.
func (b *Board) reported(drift steps.Cell) bool {
	by := b.fixing(drift)
	return by != "" && slices.ContainsFunc(b.guide.Cells(), func(c steps.Cell) bool {
		return b.results[c].Status == steps.Fail && !action.IsDrift(c.Check) && b.fixing(c) == by
	})
}

// behind returns the finding of a blocked cell. It names the blocking check and its status.
func (b *Board) behind(c, need steps.Cell, v steps.Result) string {
	where := ""
	if need.Side != c.Side {
		where = " on the " + b.guide.Sides[need.Side].Name
	}
	words := map[steps.Status]string{
		steps.Fail: "which failed", steps.Waiting: "which is still waiting", steps.Unknown: "which could not be checked",
		steps.Skip: "which was skipped",
	}
	how := words[v.Status]
	if v.Status == steps.Fail && (v.Undone || v.NotTried) {
		how = "which does not pass yet"
	}
	return fmt.Sprintf("blocked by %s%s, %s", need.Check, where, how)
}

// unmet returns the first need of a cell that does not hold. If all needs hold, the bool is false.
func (b *Board) unmet(c steps.Cell) (steps.Cell, bool) {
	check, _ := b.guide.Check(c.Check)
	if check == nil {
		return steps.Cell{}, false
	}
	for _, name := range check.Needs {
		if need, ok := b.guide.CellNamed(name, c.Side); ok && !b.judge(need).verdict.Allows() {
			return need, true
		}
	}
	return steps.Cell{}, false
}

// Causes returns the root causes of skips. Each maps to the number of cells that are skipped because of it.
func (b *Board) Causes() map[steps.Cell]int {
	out := map[steps.Cell]int{}
	for _, c := range b.guide.Cells() {
		if root, ok := b.Cause(c); ok && b.Verdict(c).Status == steps.Skip {
			out[root]++
		}
	}
	return out
}
