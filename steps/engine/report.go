package engine

import (
	"slices"
	"time"

	"carrick/steps"
)

// Report is the board as one document. It is the output of check with -o json|yaml.
type Report struct {
	APIVersion string        `json:"apiVersion"` // always carrick/v1alpha1
	Kind       string        `json:"kind"`       // always CheckReport
	Link       string        `json:"link"`
	Guide      string        `json:"guide"`
	Time       time.Time     `json:"time"`
	Sides      []ReportSide  `json:"sides"`
	Summary    ReportSummary `json:"summary"`
	Checks     []ReportCheck `json:"checks"`
	// Causes lists the IDs of the checks that fail or are unknown independently of others. It is in dependency order, so
	// the first is the one to fix first.
	Causes []string `json:"causes,omitempty"`
}

// Counts counts the states of the checks.
func (r Report) Counts() Counts {
	var n Counts
	for _, c := range r.Checks {
		n.add(c.State)
	}
	return n
}

// ReportSide is one side of a report.
type ReportSide struct {
	Side steps.Side `json:"side"`
	Role string     `json:"role"`
	Name string     `json:"name,omitempty"` // the context or host
}

// ReportSummary counts the verdicts.
type ReportSummary struct {
	Green   bool           `json:"green"`
	Verdict map[string]int `json:"verdicts"`
}

// ReportCheck is one cell of a report.
type ReportCheck struct {
	ID       string       `json:"id"` // such as "renku/token-filled@remote"
	Step     string       `json:"step"`
	Check    string       `json:"check"`
	Title    string       `json:"title"`
	Side     steps.Side   `json:"side"`
	From     string       `json:"from,omitempty"`
	Status   steps.Status `json:"status"`
	State    State        `json:"-"`                // as tables show it
	ToDo     bool         `json:"todo,omitempty"`   // a failure that is not broken, but not done yet
	Answer   string       `json:"answer,omitempty"` // the answer that makes the check not applicable
	Found    string       `json:"found,omitempty"`
	Lines    []string     `json:"lines,omitempty"` // the full finding, such as a table
	Fix      string       `json:"fix,omitempty"`
	Seconds  float64      `json:"durationSeconds"`
	Age      float64      `json:"ageSeconds"`
	CausedBy string       `json:"causedBy,omitempty"` // ID of the check that blocks this one
	Causes   int          `json:"causes,omitempty"`   // number of checks that this one blocks
}

// Look is the time and the duration of the last probe of a cell.
type Look struct {
	At       time.Time
	Duration time.Duration
}

// NewReport returns the report of a board. looks can be incomplete. If cells is nil, the report covers all cells.
func (s *Session) NewReport(b *Board, looks map[steps.Cell]Look, cells []steps.Cell, now time.Time) Report {
	r := Report{
		APIVersion: "carrick/v1alpha1", Kind: "CheckReport", Link: s.link.Name(), Guide: s.guide.Name, Time: now.UTC(),
		Summary: ReportSummary{Verdict: map[string]int{}},
	}
	for _, side := range steps.Sides {
		r.Sides = append(r.Sides, ReportSide{side, s.guide.Sides[side].Name, s.ends[side].Name})
	}
	if cells == nil {
		cells = s.guide.Cells()
	}
	behind := b.Behind()
	for _, t := range b.Troubles() {
		if t.Root && t.Result.Status != steps.Warn && slices.Contains(cells, t.Cell) {
			r.Causes = append(r.Causes, s.guide.ID(t.Cell))
		}
	}
	for _, c := range cells {
		check, _ := s.guide.Check(c.Check)
		v, state := b.Verdict(c), b.State(c)
		r.Summary.Verdict[v.Status.String()]++
		row := ReportCheck{
			ID: s.guide.ID(c), Step: c.Step, Check: c.Check, Title: check.Title, Side: c.Side, From: check.From,
			Status: v.Status, State: state, ToDo: state == ToDo, Answer: v.Answer,
			Found: v.Says(), Lines: v.Lines, Fix: v.Fix, Seconds: looks[c].Duration.Seconds(), Causes: len(behind[c]),
		}
		if !looks[c].At.IsZero() {
			row.Age = now.Sub(looks[c].At).Seconds()
		}
		if cause, ok := b.Cause(c); ok && v.Status == steps.Skip {
			row.CausedBy = s.guide.ID(cause)
		}
		r.Checks = append(r.Checks, row)
	}
	r.Summary.Green = r.Counts().Green()
	return r
}
