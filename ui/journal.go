package ui

import (
	"time"

	"carrick/steps/engine"
)

// journal records the events of this run of the wizard, oldest first.
type journal []entry

type entry struct {
	at   time.Time
	bad  bool
	text string
	sign string // glyph of the change, in its color; "" if the entry is not a change
}

func (j *journal) note(at time.Time, text string) { *j = append(*j, entry{at: at, text: text}) }

func (j *journal) did(at time.Time, sign, text string) {
	*j = append(*j, entry{at: at, text: text, sign: sign})
}

func (j *journal) trouble(at time.Time, err error) {
	*j = append(*j, entry{at: at, bad: true, text: err.Error()})
}

// trouble records an error in the journal and in carrick's log.
func (a *app) trouble(err error) {
	a.log.trouble(a.now(), err)
	a.o.Trouble(err)
}

// logPanel returns a panel with the journal, scrolled to the end.
func (a *app) logPanel() screen {
	p := a.pager("Log", func(w int) []string {
		if len(a.log) == 0 {
			return []string{a.t.faint.Render("Nothing was changed and no errors occurred.")}
		}
		var out []string
		for _, e := range a.log {
			out = append(out, a.entryLines(e, w)...)
		}
		return out
	})
	p.end = true
	return p
}

// entryLines returns an entry with its time and its symbol in w columns.
func (a *app) entryLines(e entry, w int) []string {
	sign := a.t.faint.Render("·")
	if e.sign != "" {
		sign = e.sign
	}
	if e.bad {
		sign = a.t.bad.Render(engine.Failed.Glyph())
	}
	head := a.t.faint.Render(e.at.Format("15:04:05")) + " " + sign + " "
	var body []string
	for _, l := range manyLines(e.text) {
		body = append(body, wrap(l, w-width(head))...)
	}
	return hang(head, body)
}
