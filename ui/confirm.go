package ui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// confirm lists exactly what a plan changes and asks for confirmation. The default is No. Taking over fields of other
// managers requires a separate confirmation. So does deleting objects that will be recreated.
type confirm struct {
	a         *app
	plan      *engine.Plan
	questions []question
	at        int // the current question
	yes       bool
	from      int // first visible line that the user scrolled to
	shown     int // first visible line as last drawn
	allowed   steps.ApplyOptions
	done      func(steps.ApplyOptions) tea.Cmd
}

type question struct {
	title string
	text  func(w int) []string
	allow func(*steps.ApplyOptions)
}

// confirm returns the panel that asks whether to execute a plan. If the user confirms, the panel executes the plan.
func (p *stepPage) confirm(d deed, plan *engine.Plan) screen {
	a := p.a
	c := &confirm{a: a, plan: plan, done: func(o steps.ApplyOptions) tea.Cmd { return a.start(plan, o, d) }}
	c.questions = []question{
		{d.question, func(w int) []string { return a.planLines(plan, w) }, func(*steps.ApplyOptions) {}},
	}
	if plan.Undo {
		return c
	}
	if items := plan.Conflicts(); len(items) > 0 {
		c.questions = append(c.questions, question{
			"Take over fields of " + oneLine(strings.Join(model.Managers(items), ", ")) + "?",
			func(w int) []string {
				return a.itemLines(
					"Another question first; nothing was changed yet. The fields below are set by another tool or manually. Yes "+
						"changes them, and carrick manages them from then on. "+steps.AppliedAgain+" No changes nothing.",
					items, w,
				)
			},
			func(o *steps.ApplyOptions) { o.TakeOver = true },
		})
	}
	if plan.Has(steps.Replace) {
		items := plan.Of(steps.Replace)
		c.questions = append(c.questions, question{
			"Delete and recreate?",
			func(w int) []string {
				return a.itemLines(
					"Another question first; nothing was changed yet. These objects cannot be changed in place. Yes deletes and "+
						"recreates them. No changes nothing.",
					items, w,
				)
			},
			func(o *steps.ApplyOptions) { o.Replace = true },
		})
	}
	return c
}

// confirmSigners returns the panel that asks which signing keys of facts files to trust. It then continues with the
// plan.
func (p *stepPage) confirmSigners(m plannedMsg) screen {
	c := &confirm{a: p.a, done: func(steps.ApplyOptions) tea.Cmd {
		return p.plan(m.purpose, m.title, m.scope, m.Signers...)
	}}
	for _, s := range m.Signers {
		c.questions = append(c.questions, question{s.Question(), func(w int) []string {
			return wrap(
				oneLine(s.String())+
					". Yes saves the key in the link file; carrick then rejects files with another key. No changes nothing.",
				w,
			)
		}, func(*steps.ApplyOptions) {}})
	}
	return c
}

func (a *app) itemLines(why string, items []steps.Item, w int) []string {
	out := append(wrap(why, w), "")
	for _, it := range items {
		out = append(out, a.item(it, false, w)...)
	}
	return out
}

func (c *confirm) typing() bool        { return false }
func (c *confirm) pace() time.Duration { return 0 }

func (c *confirm) update(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyMsg)
	if !ok {
		return nil
	}
	keys := c.a.k
	switch {
	case key.Matches(k, keys.Esc.Binding), key.Matches(k, keys.No.Binding):
		c.a.lift()
		c.a.notice = "nothing was changed"
		return nil
	case key.Matches(k, keys.Yes.Binding):
		return c.agreed()
	case key.Matches(k, keys.Left.Binding), key.Matches(k, keys.Right.Binding), key.Matches(k, keys.Tab.Binding):
		c.yes = !c.yes
	case key.Matches(k, keys.Open.Binding) && c.yes:
		return c.agreed()
	case key.Matches(k, keys.Open.Binding):
		c.a.lift()
		c.a.notice = "the answer was No: nothing was changed"
	case key.Matches(k, keys.Diff.Binding) && c.plan != nil:
		return c.a.lay(c.a.diffOf("Changes", c.plan))
	default:
		c.scroll(k)
	}
	return nil
}

func (c *confirm) scroll(k tea.KeyMsg) {
	n, h := len(c.questions[c.at].text(c.a.w-2)), c.bodyHeight()
	row := cursor{at: c.shown}
	if row.move(k, c.a.k, n, h) {
		c.from = max(0, min(row.at, n-h))
	}
}

// agreed handles a yes. It continues with the next question, or executes the plan.
func (c *confirm) agreed() tea.Cmd {
	c.questions[c.at].allow(&c.allowed)
	c.yes, c.from, c.shown = false, 0, 0
	if c.at+1 < len(c.questions) {
		c.at++
		return nil
	}
	c.a.lift()
	return c.done(c.allowed)
}

func (c *confirm) bodyHeight() int { return max(1, c.a.panelHeight()-2) }

func (c *confirm) view() []string {
	a, q := c.a, c.questions[c.at]
	lines, h := q.text(max(1, a.w-2)), c.bodyHeight()
	c.shown = max(0, min(c.from, len(lines)-h))
	shown := lines[c.shown:min(len(lines), c.shown+h)]
	var body []string
	for _, l := range shown {
		body = append(body, " "+l)
	}
	body = append(fill(body, h), "", c.buttons())
	right := ""
	if len(lines) > h {
		right = positions(c.shown, len(shown), len(lines))
	}
	if n := len(c.questions); n > 1 {
		right = strings.TrimPrefix(right+fmt.Sprintf(" · question %d of %d", c.at+1, n), " · ")
	}
	first := []hint{a.k.No.hint(), a.k.Yes.hint()}
	if len(lines) > h {
		first = append(first, hint{"↑↓", "scroll"})
	}
	first = append(first, hint{"←→", "yes or no"}, hint{"enter", "choose"})
	if c.plan != nil {
		first = append(first, a.k.Diff.hint())
	}
	foot := a.footer(first, []hint{a.k.Esc.hint()})
	return a.panelFrame(q.title, right, body, foot)
}

func (c *confirm) buttons() string {
	no, yes := "  No  ", "  Yes  "
	if c.yes {
		return "   " + no + "   " + c.a.t.selected.Render("▸"+yes[1:])
	}
	return "   " + c.a.t.selected.Render("▸"+no[1:]) + "   " + yes
}
