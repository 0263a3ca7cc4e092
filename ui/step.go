package ui

import (
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// stepPage is the screen of a step. It shows the step's live checks and the available actions.
type stepPage struct {
	a      *app
	at     int // index of the step
	places map[string]*place
	filter textinput.Model
	asking int // number of the last requested plan
	asked  purpose
	resume bool // apply all steps when the missing answers are saved
	number typedNumber
}

// place is the state of a step's screen. It is kept while other steps are on screen.
type place struct {
	row     cursor
	check   string     // name of the selected check, even if its row is hidden; "" means the first check
	side    steps.Side // side of the selected cell, if the check runs on that side
	moved   bool       // the user has chosen the row
	formed  bool       // the form has opened automatically
	wanted  bool       // open the form when the answers are known
	answers []engine.Answered
	drafts  map[string]*string // texts typed into the form, by question
}

// forecastMsg is sent when the changes of a step have been computed.
type forecastMsg struct{}

type answersMsg struct {
	step string
	list []engine.Answered
}

func newStepPage(a *app, at int) *stepPage {
	p := &stepPage{a: a, at: at, places: map[string]*place{}}
	p.filter = p.newFilter()
	return p
}

func (p *stepPage) newFilter() textinput.Model {
	f := textinput.New()
	f.Prompt = "/ "
	p.a.t.dress(&f)
	return f
}

func (p *stepPage) session() *engine.Session { return p.a.live.Session }

func (p *stepPage) guide() *steps.Guide { return p.a.live.Guide() }

func (p *stepPage) step() *steps.Step { return &p.guide().Steps[p.at] }

func (p *stepPage) place() *place { return p.placeOf(p.step().Name) }

func (p *stepPage) placeOf(step string) *place {
	if p.places[step] == nil {
		p.places[step] = &place{side: steps.Local, drafts: map[string]*string{}}
	}
	return p.places[step]
}

func (p *stepPage) typing() bool { return p.filter.Focused() }

func (p *stepPage) pace() time.Duration {
	var pace time.Duration
	for _, c := range p.a.live.Of(p.step().Name) {
		if k := p.a.live.Look(c); k.Began.IsZero() || k.Asked {
			pace = faster(pace, spinning)
		}
		if r := p.a.live.Board.Verdict(c); r.Status == steps.Waiting && !r.Since.IsZero() {
			pace = faster(pace, counting)
		}
	}
	if p.asked != nothing {
		pace = faster(pace, spinning)
	}
	if p.a.wide() {
		pace = faster(pace, ageing)
	}
	return pace
}

func (p *stepPage) about() string {
	return p.step().Title + ": " + oneLine(p.step().Why)
}

func (p *stepPage) begin() tea.Cmd {
	p.filter.Reset()
	p.filter.Blur()
	p.asked, p.place().wanted = nothing, false
	return tea.Batch(p.learnAnswers(), p.forecast(true), p.boardMoved())
}

// enter goes to another step. The index after the last step is the summary.
func (p *stepPage) enter(at int) tea.Cmd {
	if at < 0 || at > len(p.guide().Steps) {
		return nil
	}
	if at == len(p.guide().Steps) {
		p.a.run.dismiss()
		return p.a.turn(&summary{a: p.a, from: p})
	}
	p.at = at
	if !p.a.live.Board.Count(p.step().Name).Green() {
		p.place().moved = false // so that the first failure is selected
	}
	p.a.run.dismiss()
	return p.a.turn(p)
}

func (p *stepPage) learnAnswers() tea.Cmd {
	step := p.step()
	if len(step.Ask) == 0 {
		return nil
	}
	ctx, session := p.a.ctx, p.session()
	return func() tea.Msg { return answersMsg{step.Name, session.Answers(ctx, step)} }
}

// missing returns the questions of a step that have neither an answer nor a default.
func (pl *place) missing() []engine.Answered {
	var out []engine.Answered
	for _, a := range pl.answers {
		if a.Asked && a.Value == nil && !a.Question.Opt {
			out = append(out, a)
		}
	}
	return out
}

// forecast computes in the background how much applying the step would change. The footer shows the result.
func (p *stepPage) forecast(again bool) tea.Cmd {
	ctx, live, step := p.a.ctx, p.a.live, p.step().Name
	if p.a.run.busy() || !live.ForecastDue(step, again) {
		return nil
	}
	return func() tea.Msg {
		live.Forecast(ctx, step)
		return forecastMsg{}
	}
}

// boardMoved moves the cursor to the most important row, unless the user has chosen a row. It also updates the
// forecast.
func (p *stepPage) boardMoved() tea.Cmd {
	pl, step := p.place(), p.step()
	if p.a.run.mended(p.a) {
		p.a.run.dismiss()
	}
	if c, wrong := p.a.run.overtaken(p.a, step.Name); wrong {
		p.a.run.hide(p.a, c)
		p.to(c)
	}
	p.a.run.recover(p.a)
	if !pl.moved && !p.a.live.Seen(step.Name).IsZero() {
		p.toTrouble()
		pl.moved = true
	}
	if p.a.live.Seen(step.Name).IsZero() {
		return nil
	}
	return p.forecast(false)
}

// toTrouble selects the first cell that fails. If none fails, it selects the first cell that is not green. If only one
// side is shown at a time and nothing is wrong, it selects the side with more checks.
func (p *stepPage) toTrouble() {
	pl, many := p.place(), map[steps.Side]int{}
	for _, s := range []engine.State{engine.Failed, engine.Unknown, engine.ToDo, engine.InProgress} {
		for i := range p.step().Checks {
			c := &p.step().Checks[i]
			for _, side := range steps.Sides {
				if c.On.Covers(side) && p.a.live.Board.State(p.cellOf(c, side)) == s {
					pl.side = side
					pl.check = c.Name
					return
				}
				if c.On.Covers(side) {
					many[side]++
				}
			}
		}
	}
	if p.a.narrow() && many[pl.side.Peer()] > many[pl.side] {
		pl.side = pl.side.Peer()
	}
}

func (p *stepPage) to(c steps.Cell) {
	pl := p.place()
	pl.side = c.Side
	check, _ := p.guide().Check(c.Check)
	if !slices.Contains(p.rows(), check) {
		p.filter.Reset()
	}
	pl.check = check.Name
}

func (p *stepPage) verdict(c *steps.Check, side steps.Side) steps.Result {
	return p.a.live.Board.Verdict(p.cellOf(c, side))
}

// rows returns the checks that match the filter. If only one side is shown at a time, they are the checks of that side.
// Without a filter, the checks that an answer turns off are hidden, unless the user wants to see them.
func (p *stepPage) rows() []*steps.Check {
	var out []*steps.Check
	want, side := strings.ToLower(strings.TrimSpace(p.filter.Value())), p.side()
	for i := range p.step().Checks {
		c := &p.step().Checks[i]
		if p.a.narrow() && !c.On.Covers(side) || want == "" && !p.a.showsOff && p.off(c) {
			continue
		}
		if want == "" || strings.Contains(p.searched(c), want) {
			out = append(out, c)
		}
	}
	return out
}

// off reports whether an answer makes a check not applicable on all of its sides.
func (p *stepPage) off(c *steps.Check) bool {
	return !slices.ContainsFunc(steps.Sides, func(side steps.Side) bool {
		return c.On.Covers(side) && p.a.live.Board.State(p.cellOf(c, side)) != engine.Off
	})
}

// hidden returns the number of checks that are hidden because an answer turns them off.
func (p *stepPage) hidden() int {
	n := 0
	for i := range p.step().Checks {
		if c := &p.step().Checks[i]; !p.a.showsOff && p.filter.Value() == "" && p.off(c) {
			n++
		}
	}
	return n
}

// searched returns the text to which the filter applies. It contains the name, title, verdicts and findings.
func (p *stepPage) searched(c *steps.Check) string {
	text := c.Name + " " + c.Title
	for _, side := range steps.Sides {
		if c.On.Covers(side) {
			r, word := p.verdict(c, side), p.word(p.cellOf(c, side))
			text += " " + p.guide().Sides[side].Name + " " + word + " " + r.Status.String() + " " + r.Found
		}
	}
	return strings.ToLower(text)
}

// side returns the side of the selected cell. If the selected row does not exist on that side, it returns the other
// side.
func (p *stepPage) side() steps.Side {
	pl := p.place()
	for i := range p.step().Checks {
		if c := &p.step().Checks[i]; c.Name == pl.check && !c.On.Covers(pl.side) {
			return pl.side.Peer()
		}
	}
	return pl.side
}

// settle puts the cursor on the selected row. If that row is hidden, it puts the cursor on the next visible row.
func (p *stepPage) settle(rows []*steps.Check) {
	pl, at := p.place(), 0
	for i := range p.step().Checks {
		c := &p.step().Checks[i]
		if c.Name == pl.check || pl.check == "" {
			break
		}
		if at < len(rows) && rows[at] == c {
			at++
		}
	}
	pl.row.at = max(0, min(at, len(rows)-1))
}

// cell returns the selected cell. If there are no rows, ok is false.
func (p *stepPage) cell() (c *steps.Check, cell steps.Cell, ok bool) {
	rows := p.rows()
	if len(rows) == 0 {
		return nil, steps.Cell{}, false
	}
	p.settle(rows)
	c = rows[p.place().row.at]
	side := p.side()
	if !c.On.Covers(side) {
		side = side.Peer()
	}
	return c, steps.Cell{Step: p.step().Name, Check: c.Name, Side: side}, true
}

// moves handles a movement key. It reports whether k is a movement key.
func (p *stepPage) moves(k tea.KeyMsg, page int) bool {
	pl, rows := p.place(), p.rows()
	p.settle(rows)
	if !pl.row.move(k, p.a.k, len(rows), page) {
		return false
	}
	if len(rows) > 0 {
		if p.a.narrow() {
			pl.side = p.side()
		}
		pl.check = rows[pl.row.at].Name
	}
	return true
}

// word returns the word for the state of a cell. For a cell that waits, this is the elapsed time, if known.
func (p *stepPage) word(c steps.Cell) string {
	if r := p.a.live.Board.Verdict(c); r.Status == steps.Waiting && !r.Since.IsZero() {
		return span(p.a.now().Sub(r.Since))
	}
	return p.a.live.Board.State(c).String()
}

func (p *stepPage) cellOf(c *steps.Check, side steps.Side) steps.Cell {
	return steps.Cell{Step: p.step().Name, Check: c.Name, Side: side}
}
