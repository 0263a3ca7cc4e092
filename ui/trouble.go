package ui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// trouble is the panel that lists what is broken and what is to do in all steps, causes first. It is updated while it
// is open.
type trouble struct {
	a      *app
	page   *stepPage
	row    cursor
	on     steps.Cell // the selected cell, which remains selected when the list changes
	moved  bool       // the user has chosen a row; until then the first row is selected
	filter textinput.Model
}

// troublePanel returns the panel for a page that has a board, and nil for other pages.
func (a *app) troublePanel() screen {
	var page *stepPage
	switch p := a.page.(type) {
	case *stepPage:
		page = p
	case *summary:
		page = p.from
	default:
		return nil
	}
	return &trouble{a: a, page: page, filter: page.newFilter()}
}

func (t *trouble) typing() bool        { return t.filter.Focused() }
func (t *trouble) pace() time.Duration { return 0 }

// list returns the failures that match the filter. The selected cell stays selected while it is listed.
func (t *trouble) list() []engine.Trouble {
	all := t.a.live.Board.Troubles()
	if want := strings.ToLower(strings.TrimSpace(t.filter.Value())); want != "" {
		all = slices.DeleteFunc(
			all, func(one engine.Trouble) bool { return !strings.Contains(strings.ToLower(t.words(one)), want) },
		)
	}
	if at := slices.IndexFunc(all, func(one engine.Trouble) bool { return one.Cell == t.on }); !t.moved {
		t.row.at = 0
	} else if at >= 0 {
		t.row.at = at
	}
	t.row.at = max(0, min(t.row.at, len(all)-1))
	if len(all) > 0 {
		t.on = all[t.row.at].Cell
	}
	return all
}

// words returns the text to which the filter applies.
func (t *trouble) words(one engine.Trouble) string {
	check, step := t.page.guide().Check(one.Cell.Check)
	return strings.Join(
		[]string{
			check.Name, check.Title, step.Title, t.page.guide().Sides[one.Cell.Side].Name,
			t.a.live.Board.State(one.Cell).String(), one.Result.Found,
		},
		" ",
	)
}

func (t *trouble) update(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyMsg)
	if !ok {
		if t.typing() {
			var cmd tea.Cmd
			t.filter, cmd = t.filter.Update(msg)
			return cmd
		}
		return nil
	}
	if t.typing() {
		return t.typed(k)
	}
	list, keys := t.list(), t.a.k
	if t.row.move(k, keys, len(list), t.room()) {
		t.moved = true
		t.on = steps.Cell{}
		if len(list) > 0 {
			t.on = list[t.row.at].Cell
		}
		return nil
	}
	switch {
	case key.Matches(k, keys.Esc.Binding) && t.filter.Value() != "":
		t.filter.Reset()
	case key.Matches(k, keys.Esc.Binding), key.Matches(k, keys.Trouble.Binding):
		t.a.lift()
	case key.Matches(k, keys.Filter.Binding):
		return t.filter.Focus()
	case key.Matches(k, keys.All.Binding):
		return t.a.again()
	case len(list) == 0:
	case key.Matches(k, keys.Open.Binding):
		return t.page.goTo(t.on)
	case key.Matches(k, keys.Again.Binding):
		return t.a.again(t.on)
	case key.Matches(k, keys.Copy.Binding):
		return t.a.copy(t.a.live.Copied(t.on))
	case key.Matches(k, keys.Fix.Binding):
		cmd := t.page.goTo(t.on)
		return tea.Batch(cmd, t.page.fix())
	}
	return nil
}

func (t *trouble) typed(k tea.KeyMsg) tea.Cmd {
	switch {
	case key.Matches(k, t.a.k.Esc.Binding):
		t.filter.Reset()
		t.filter.Blur()
		return nil
	case key.Matches(k, t.a.k.Open.Binding):
		t.filter.Blur()
		return nil
	}
	t.row, t.on = cursor{}, steps.Cell{}
	var cmd tea.Cmd
	t.filter, cmd = t.filter.Update(k)
	return cmd
}

// found returns the number of lines reserved for the finding of the selected cell.
func (t *trouble) found() int {
	if h := t.a.panelHeight(); h >= 14 {
		return min(6, h/4)
	}
	return 0
}

func (t *trouble) room() int {
	n := t.a.panelHeight()
	if f := t.found(); f > 0 {
		n -= f + 1
	}
	return max(1, n)
}

func (t *trouble) view() []string {
	a, list := t.a, t.list()
	title, right := "Broken and next", ""
	if t.filter.Focused() {
		title += "  " + t.filter.View()
	} else if t.filter.Value() != "" {
		title += "  / " + t.filter.Value()
	}
	var body []string
	if len(list) == 0 {
		text := "nothing is wrong"
		if t.filter.Value() != "" {
			text = "no row has this text; esc shows all"
		} else if done, all := a.live.Looked(); done < all {
			text = fmt.Sprintf("nothing is wrong yet: %d of %d checks done", done, all)
		}
		return a.panelFrame(title, right, []string{"", "   " + a.t.faint.Render(text)}, t.foot(list))
	}
	rows, heights := make([][]string, len(list)), make([]int, len(list))
	for i := range list {
		if h := heading(list[i]); i == 0 || h != heading(list[i-1]) {
			rows[i] = append(rows[i], " "+a.t.title.Render(h))
		}
		rows[i] = append(rows[i], t.line(list[i], i == t.row.at))
		heights[i] = len(rows[i])
	}
	from, to := t.row.span(heights, t.room())
	for _, r := range rows[from:to] {
		body = append(body, r...)
	}
	if to-from < len(list) {
		right = positions(from, to-from, len(list))
	}
	if t.found() > 0 {
		body = append(fill(body, t.room()), "")
		body = append(body, fill(t.details(list[t.row.at]), t.found())...)
	}
	return a.panelFrame(title, right, body, t.foot(list))
}

// heading returns the heading above a trouble and those of its kind.
func heading(one engine.Trouble) string {
	switch {
	case one.ToDo:
		return "Next"
	case one.Result.Status == steps.Warn:
		return "Warnings"
	}
	return "Broken"
}

// line returns one failing cell on one line with its step, side and title.
func (t *trouble) line(one engine.Trouble, selected bool) string {
	a, guide := t.a, t.page.guide()
	check, step := guide.Check(one.Cell.Check)
	number := 1 + slices.IndexFunc(guide.Steps, func(s steps.Step) bool { return s.Name == step.Name })
	sides := 0
	for _, side := range steps.Sides {
		sides = max(sides, width(guide.Sides[side].Name))
	}
	mark := "   "
	name := oneLine(check.Title)
	if selected {
		mark, name = " "+a.t.accent.Render("▸")+" ", a.t.title.Render(name)
	}
	head := mark + a.t.sign(a.live.Board.State(one.Cell)) +
		fmt.Sprintf(" %*d  ", len(strconv.Itoa(len(guide.Steps))), number) + pad(guide.Sides[one.Cell.Side].Name, sides) +
		"  "
	behind := ""
	if n := len(one.Behind); n > 0 {
		behind = a.t.faint.Render(causes(n)) + " "
	}
	return head + spread(clip(name, a.w-width(head)-width(behind)-1), behind, a.w-width(head))
}

func (t *trouble) details(one engine.Trouble) []string {
	_, step := t.page.guide().Check(one.Cell.Check)
	text := "step " + step.Title + ": " + oneLine(one.Result.Found)
	lines := wrap(text, max(1, t.a.w-5))
	if len(lines) > t.found() {
		lines = cutLast(lines[:t.found()+1], t.a.w-5)
	}
	for i := range lines {
		lines[i] = "   " + t.a.t.faint.Render(lines[i])
	}
	return lines
}

func (t *trouble) foot(list []engine.Trouble) string {
	a, keys := t.a, t.a.k
	switch {
	case t.typing():
		return a.footer([]hint{{"enter", "keep"}, keys.Esc.as("show all")}, nil)
	case a.notice != "":
		return " " + a.notice
	case len(list) == 0:
		return a.footer([]hint{keys.All.hint()}, []hint{keys.Esc.hint()})
	}
	first := []hint{keys.Open.as("go there")}
	if mend, _ := a.live.Offer(t.on); mend != nil {
		first = append(first, keys.Fix.hint())
	}
	return a.footer(
		append(first, hint{"↑↓", "move"}, keys.Filter.hint(), keys.Again.hint(), keys.Copy.hint()), []hint{keys.Esc.hint()},
	)
}
