package ui

import (
	"fmt"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// mapPanel is the map of both sides. It shows the objects of each step and the arrows between them with their states.
// On a wide screen, it also shows the latest events.
type mapPanel struct {
	a     *app
	page  *stepPage
	row   cursor
	part  mapPart
	names objectNames
}

// mapPanel returns the panel for a page that has a board, and nil for other pages.
func (a *app) mapPanel() screen {
	page := a.stepPage()
	if page == nil {
		return nil
	}
	m := &mapPanel{a: a, page: page, part: arrowPart}
	if _, ok := a.page.(*stepPage); ok {
		m.row.at = page.at
	}
	return m
}

func (m *mapPanel) typing() bool        { return false }
func (m *mapPanel) pace() time.Duration { return m.page.pace() }

// begin computes the names of what this link created.
func (m *mapPanel) begin() tea.Cmd {
	if m.a.w < wideFrom {
		return nil
	}
	ctx, live := m.a.ctx, m.a.live
	return func() tea.Msg { return namesMsg{live.Show(ctx, engine.Scope{}, true).Plan} }
}

// namesMsg contains what this link has created.
type namesMsg struct{ plan *engine.Plan }

func (m *mapPanel) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case namesMsg:
		m.names = m.a.namesIn(msg.plan)
	case tea.KeyMsg:
		return m.pressed(msg)
	}
	return nil
}

func (m *mapPanel) pressed(k tea.KeyMsg) tea.Cmd {
	a, rows := m.a, m.a.live.Map()
	switch {
	case m.row.move(k, a.k, len(rows), m.room()):
		a.run.dismiss() // its result covers the description of the row
	case key.Matches(k, a.k.Tab.Binding, a.k.Right.Binding):
		m.turn(rows, 1)
		a.run.dismiss()
	case key.Matches(k, a.k.Left.Binding):
		m.turn(rows, remotePart)
		a.run.dismiss()
	case key.Matches(k, a.k.Open.Binding):
		if c, ok := m.selected(rows).First(a.live.Board); ok {
			return m.page.goTo(c)
		}
	case key.Matches(k, a.k.Fix.Binding):
		if c, ok := m.selected(rows).First(a.live.Board); ok {
			return tea.Batch(m.page.goTo(c), m.page.fix())
		}
	case key.Matches(k, a.k.Everything.Binding):
		return m.page.applyAll()
	case key.Matches(k, a.k.All.Binding):
		return a.again()
	case key.Matches(k, a.k.Jump.Binding, a.k.Digit.Binding):
		a.lift()
		return m.page.jump(k)
	case key.Matches(k, a.k.Esc.Binding) && m.page.asked != nothing:
		m.page.asked = nothing
	case key.Matches(k, a.k.Esc.Binding, a.k.Map.Binding):
		a.run.dismiss()
		a.lift()
	}
	return nil
}

// turn selects the next part of the row that exists, by parts further.
func (m *mapPanel) turn(rows []model.MapRow, by mapPart) {
	at := m.on(rows)
	for range remotePart + 1 {
		at = (at + by) % (remotePart + 1)
		if selectable(part(rows[m.row.at], at)) {
			break
		}
	}
	m.part = at
}

// selectable reports whether a part of a row can be selected.
func selectable(p model.MapPart) bool { return p.Label != "" && len(p.Cells) > 0 }

// on returns the selected part. If the row does not have that part, it returns the arrow, or else the object that
// determines the state of the step.
func (m *mapPanel) on(rows []model.MapRow) mapPart {
	r := rows[m.row.at]
	if local := r.Objects[steps.Local]; !selectable(part(r, m.part)) && r.To == "" {
		if selectable(local) && (local.State == r.Arrow.State || !selectable(r.Objects[steps.Remote])) {
			return localPart
		}
		return remotePart
	} else if !selectable(part(r, m.part)) {
		return arrowPart
	}
	return m.part
}

func (m *mapPanel) selected(rows []model.MapRow) model.MapPart {
	return part(rows[m.row.at], m.on(rows))
}

// room returns the number of rows that fit.
func (m *mapPanel) room() int {
	h := m.a.panelHeight() - m.extra()
	if !m.a.boxes() {
		return max(1, h)
	}
	return max(1, h-3)
}

// extra returns the number of lines below the map.
func (m *mapPanel) extra() int {
	switch h := m.a.panelHeight(); {
	case h >= 18:
		return 4
	case h >= 10:
		return 2
	}
	return 0
}

// boxes reports whether the map has a box for each side.
func (a *app) boxes() bool { return a.w >= bothFrom && a.h >= 10 }

func (m *mapPanel) view() []string {
	a, rows := m.a, m.a.live.Map()
	one := m.selected(rows)
	w := a.w - 2
	feed := 0
	if a.wide() {
		feed = max(36, a.w/3-4)
		w -= feed + 2
	}
	if !a.boxes() {
		w = min(w, bothFrom-6)
	}
	from, to := m.row.window(len(rows), m.room())
	names := m.names
	if to-from < len(rows) || len(rows)+names.lines(rows) > m.room() {
		names = nil
	}
	body := a.mapOf(rows, spot{m.row.at, m.on(rows)}, w, from, to, names)
	if m.extra() > 2 {
		body = append(body, "", a.progress(w))
	}
	if m.extra() > 0 {
		room := max(2, a.panelHeight()-len(body))
		about := m.about(rows, one, w)
		if a.run.visible() {
			about = a.run.view(a, w, room)
		}
		body = append(body, fill(about, room)...)
	}
	for i := range body {
		body[i] = " " + body[i]
	}
	if feed > 0 {
		body = a.beside(fill(body, a.panelHeight()), a.feedLines(feed, a.panelHeight()), w+2)
	}
	right := oneLine(a.live.Session.Link().Name())
	if to-from < len(rows) {
		right = positions(from, to-from, len(rows))
	}
	return a.panelFrame(a.live.Guide().Title+", map of both sides", right, body, m.foot())
}

// progress returns the states of all steps and how many of them are complete.
func (a *app) progress(w int) string {
	page := a.stepPage()
	done, all := 0, 0
	for i := range page.guide().Steps {
		switch a.live.State(page.guide().Steps[i].Name) {
		case engine.Off:
		case engine.OK, engine.Warning, engine.Skipped:
			done++
			all++
		default:
			all++
		}
	}
	text := fmt.Sprintf("%d of %d steps", done, all)
	strip := page.strip()
	return spread(strip, a.bar(done, all, min(24, w-width(strip)-width(text)-4))+" "+text, w)
}

// about describes the selected part: its step, its counts and its checks. The check that determines the state comes
// first, with its finding.
func (m *mapPanel) about(rows []model.MapRow, one model.MapPart, w int) []string {
	a, r, at := m.a, rows[m.row.at], m.on(rows)
	name := fmt.Sprintf("%d %s", r.Step+1, m.page.guide().Steps[r.Step].Title)
	if at != arrowPart {
		name += ", " + a.live.Role(steps.Sides[at/2]) + ": " + one.Label
	}
	out := []string{clip(a.t.title.Render(name)+"  "+m.page.tally(a.live.Board.CountOf(one.Cells)), w)}
	first, ok := one.First(a.live.Board)
	line := func(c steps.Cell, found string) string {
		return clip(a.t.sign(a.live.Board.State(c))+" "+a.live.Title(c, c)+found, w)
	}
	if ok && one.State != engine.OK {
		out = append(out, line(first, ": "+a.foundOf(first)))
	}
	for _, c := range one.Cells {
		if s := a.live.Board.State(c); s != engine.Off && (c != first || one.State == engine.OK) {
			out = append(out, line(c, ""))
		}
	}
	return out
}

func (m *mapPanel) foot() string {
	a, keys := m.a, m.a.k
	switch {
	case a.notice != "":
		return " " + a.notice
	case m.page.asked != nothing:
		return a.footer([]hint{{a.spin(), "planning the changes"}}, nil)
	case a.run.busy():
		return a.footer([]hint{keys.Interrupt.as("stop"), {"↑↓", "step"}}, []hint{keys.Esc.hint()})
	}
	first := append([]hint{keys.Open.as("go there"), {"↑↓", "step"}, {"←→", "part"}}, a.applyAllHint()...)
	if len(a.live.Wrong(engine.Failed, engine.Unknown)) > 0 {
		first = append(first, keys.Trouble.as("what is wrong"))
	}
	return a.footer(append(first, keys.All.hint()), []hint{keys.Esc.hint()})
}
