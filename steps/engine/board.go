package engine

import (
	"fmt"
	"strings"
	"sync"

	"carrick/steps"
)

// Board contains the latest result of every cell. It computes the verdicts from them.
type Board struct {
	guide   *steps.Guide
	mu      sync.Mutex
	results map[steps.Cell]steps.Result
	known   map[steps.Cell]judged // cached verdicts for the current results
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
	return fmt.Sprintf("blocked by %s%s, %s", need.Check, where, words[v.Status])
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

// Counts is the number of cells per status.
type Counts [steps.Statuses]int

// Of returns the number of cells with status s.
func (c Counts) Of(s steps.Status) int { return c[s] }

// Count counts the verdicts of a step. If step is "", it counts those of all steps.
func (b *Board) Count(step string) Counts {
	var n Counts
	for _, c := range b.guide.Cells() {
		if step == "" || c.Step == step {
			n[b.Verdict(c).Status]++
		}
	}
	return n
}

// Green reports whether no cell is failed, unknown, waiting or pending.
func (c Counts) Green() bool {
	return c[steps.Fail]+c[steps.Unknown]+c[steps.Waiting]+c[steps.Pending] == 0
}

// String returns the counts as shown on screen, such as "11 ok · 1 failed".
func (c Counts) String() string {
	var parts []string
	for _, p := range []struct {
		s     steps.Status
		words string
	}{
		{steps.Pass, "ok"},
		{steps.Fail, "failed"},
		{steps.Unknown, "unknown"},
		{steps.Warn, "warning"},
		{steps.Waiting, "waiting"},
		{steps.Pending, "checking"},
		{steps.Skip, "skipped"},
	} {
		if n := c[p.s]; n > 0 {
			words := p.words
			if p.s == steps.Warn && n > 1 {
				words = "warnings"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, words))
		}
	}
	return strings.Join(parts, " · ")
}
