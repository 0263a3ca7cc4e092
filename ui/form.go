package ui

import (
	"cmp"
	"errors"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/huh"
	"github.com/charmbracelet/lipgloss"

	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/engine"
)

// form asks the questions of a step. Typed text is kept in the drafts of the step until it is saved. Closing the form
// therefore loses nothing.
type form struct {
	p      *stepPage
	step   *steps.Step
	asked  []engine.Answered
	form   *huh.Form
	theme  *huh.Theme           // the screen's theme
	styles *lipgloss.Renderer   // renderer of the theme in which the form was last drawn
	texts  map[string]*huh.Text // multi-line fields by question
	said   string
}

type savedMsg struct {
	changes int
	err     error
}

func (p *stepPage) openForm() tea.Cmd {
	pl := p.place()
	var asked []engine.Answered
	for _, q := range pl.answers {
		if q.Asked {
			asked = append(asked, q)
		}
	}
	switch {
	case len(p.step().Ask) == 0:
		p.a.notice = "this step has no questions"
		return nil
	case len(pl.answers) == 0:
		p.a.notice = "reading the answers …"
		pl.wanted = true
		return p.learnAnswers()
	case len(asked) == 0:
		p.a.notice = "no question of this step applies"
		return nil
	}
	pl.formed = true
	f := &form{p: p, step: p.step(), asked: asked, theme: p.a.t.formTheme(), texts: map[string]*huh.Text{}}
	var fields []huh.Field
	for _, q := range asked {
		fields = append(fields, f.field(q))
	}
	f.form = huh.NewForm(
		huh.NewGroup(fields...).WithShowErrors(false),
	).WithShowHelp(false).WithTheme(f.theme).WithKeyMap(formKeys())
	return p.a.lay(f)
}

func (f *form) begin() tea.Cmd             { return f.form.Init() }
func (f *form) typing() bool               { return true }
func (f *form) pace() time.Duration        { return 0 }
func (f *form) drafts() map[string]*string { return f.p.placeOf(f.step.Name).drafts }

func (f *form) update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(editedMsg); ok {
		f.edited(m)
		return nil
	}
	if k, ok := msg.(tea.KeyMsg); ok {
		f.said = ""
		q := f.focused()
		switch {
		case q != nil && f.texts[q.Question.Key] != nil && key.Matches(k, f.p.a.k.Edit.Binding):
			return f.edit(q)
		case key.Matches(k, f.p.a.k.Esc.Binding):
			f.p.a.lift()
			f.p.resume = false
			f.p.a.notice = "not saved; your input is kept"
			return nil
		case key.Matches(k, f.p.a.k.Store.Binding):
			return f.save()
		}
		msg = f.turned(k)
	}
	f.fit()
	m, cmd := f.form.Update(msg)
	f.form = m.(*huh.Form)
	if f.form.State == huh.StateCompleted {
		f.form.State = huh.StateNormal
		return f.save()
	}
	return cmd
}

// turned remaps keys in yes-or-no questions. Up and down go to another question, y and n answer, and space toggles.
func (f *form) turned(k tea.KeyMsg) tea.KeyMsg {
	focused := f.focused()
	if focused == nil || focused.Question.Kind != steps.YesNo {
		return k
	}
	q := focused.Question
	yes := *f.drafts()[q.Key] == "true"
	switch k.String() {
	case "up", "k":
		return tea.KeyMsg{Type: tea.KeyShiftTab}
	case "down", "j":
		return tea.KeyMsg{Type: tea.KeyTab}
	case "y", "Y":
		if !yes {
			return tea.KeyMsg{Type: tea.KeyRight}
		}
	case "n", "N":
		if yes {
			return tea.KeyMsg{Type: tea.KeyRight}
		}
	case " ":
		return tea.KeyMsg{Type: tea.KeyRight}
	}
	return k
}

// save stores the typed answers in the session and writes the link file. If an answer is invalid, save shows an error
// and stores nothing.
func (f *form) save() tea.Cmd {
	type change struct {
		key   string
		value any
	}
	var changes []change
	var empty *steps.Question
	for _, q := range f.asked {
		v, changed, err := f.typed(q)
		switch {
		case errors.Is(err, errNeeded) && q.Question.Default != nil:
			empty = cmp.Or(empty, q.Question)
		case err != nil:
			f.said = q.Question.Title + ": " + err.Error()
			return nil
		case changed:
			changes = append(changes, change{q.Question.Key, v})
		}
	}
	if len(changes) == 0 && empty != nil { // if there are changes, they might provide the default
		f.said = empty.Title + ": " + errNeeded.Error()
		return nil
	}
	f.p.a.lift()
	for _, q := range f.asked {
		delete(f.drafts(), q.Question.Key)
	}
	session := f.p.session()
	return func() tea.Msg {
		var errs []error
		for _, c := range changes {
			errs = append(errs, session.Answer(c.key, c.value))
		}
		if err := errors.Join(append(errs, session.Save())...); err != nil {
			return savedMsg{err: err}
		}
		return savedMsg{changes: len(changes)}
	}
}

func (p *stepPage) saved(m savedMsg) tea.Cmd {
	switch path := p.session().Link().Path; {
	case m.err != nil:
		p.a.trouble(m.err)
		return p.a.lay(p.a.errorPanel("The answers could not be saved", m.err))
	case m.changes == 0:
		p.a.notice = "the answers are unchanged"
	default:
		if p.a.run.failed() {
			p.a.run.dismiss() // that run used other answers
		}
		p.a.notice = steps.Plural(m.changes, "answer") + " saved to " + p.a.shortPath(path)
	}
	cmd := tea.Batch(p.learnAnswers(), p.forecast(true))
	if p.resume {
		p.resume = false
		return tea.Batch(cmd, p.applyAll())
	}
	return cmd
}

var errNeeded = errors.New("an answer is required")

// typed returns the typed answer. If it differs from the current answer, changed is true. An unchanged default is not
// stored as an answer.
func (f *form) typed(q engine.Answered) (value any, changed bool, err error) {
	typed := *f.draft(q)
	switch {
	case q.Question.Secret && typed == "":
		if q.Value == nil && !q.Question.Opt {
			return nil, false, errNeeded
		}
		return nil, false, nil
	case !q.Question.Secret && typed == q.Question.Show(q.Value):
		if typed == "" && !q.Question.Opt {
			return nil, false, errNeeded
		}
		return nil, false, nil
	case typed == "" && q.Question.Opt && q.Question.Default != nil:
		return "", true, nil // deliberately empty
	case typed == "" && q.Question.Default != nil:
		return nil, true, nil // the default applies again
	}
	value, err = q.Question.Parse(typed)
	if err == nil && q.Question.Secret {
		value = masked.New(typed)
	}
	return value, true, err
}

// wrong returns the error that prevents the user from saving or leaving the field.
func (f *form) wrong() string {
	if f.said != "" {
		return f.said
	}
	q := f.focused()
	if err := f.form.GetFocusedField().Error(); q != nil && err != nil {
		return q.Question.Title + ": " + err.Error()
	}
	return ""
}

// wrongLines formats the error from wrong. It uses at most half of the available lines.
func (f *form) wrongLines() []string {
	a, wrong := f.p.a, f.wrong()
	if wrong == "" {
		return nil
	}
	lines := wrap(oneLine(wrong), max(1, min(a.w-4, proseWidth)))
	return hang(" "+a.t.bad.Render("✗")+" ", squeeze([][]string{lines}, max(1, a.panelHeight()/2), a.w-4))
}

// fit sets the size of the form and returns the number of lines of the form. It must be called before the form is drawn
// and before the form scrolls to the focused field.
func (f *form) fit() int {
	h := f.p.a.panelHeight() - len(f.wrongLines())
	f.form.WithWidth(max(10, min(f.p.a.w-2, 90))).WithHeight(max(1, h))
	return h
}

// themed applies the theme of the screen to the form if that theme has changed.
func (f *form) themed() {
	if t := &f.p.a.t; f.styles != t.renderer {
		f.styles = t.renderer
		*f.theme = *t.formTheme()
		f.form.Update(nil) // the form redraws only on a message
	}
}

func (f *form) view() []string {
	a, h := f.p.a, f.fit()
	f.themed()
	var body []string
	for _, l := range manyStyled(f.form.View()) {
		body = append(body, " "+l)
	}
	body = fill(body, max(0, h))
	body = append(body, f.wrongLines()...)
	first := []hint{{"enter", "next"}, a.k.Store.hint(), {"shift+tab", "back"}}
	if q := f.focused(); q != nil && f.texts[q.Question.Key] != nil {
		first = []hint{a.k.Edit.hint(), {"tab", "next"}, a.k.Store.hint(), {"shift+tab", "back"}}
	}
	foot := a.footer(first, []hint{a.k.Esc.as("leave, keep input")})
	return a.panelFrame("Answers of step "+f.step.Title, steps.Plural(len(f.asked), "question"), body, foot)
}
