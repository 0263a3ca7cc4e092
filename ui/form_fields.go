package ui

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/huh"
	"github.com/charmbracelet/lipgloss"

	"carrick/steps"
	"carrick/steps/engine"
)

// draft returns the typed text for a question. Initially it is the current answer.
func (f *form) draft(q engine.Answered) *string {
	d := f.drafts()[q.Question.Key]
	if d == nil {
		text := ""
		if !q.Question.Secret {
			text = q.Question.Show(q.Value)
		}
		d = &text
		f.drafts()[q.Question.Key] = d
	}
	return d
}

func (f *form) field(q engine.Answered) huh.Field {
	title, help := oneLine(q.Question.Title), f.help(q)
	value := f.draft(q)
	switch q.Question.Kind {
	case steps.YesNo:
		if *value == "" {
			*value = "false"
		}
		return huh.NewSelect[string]().Key(q.Question.Key).Title(title).Description(help).Inline(true).
			Options(huh.NewOption("yes", "true"), huh.NewOption("no", "false")).Value(value)
	case steps.Pick:
		var options []huh.Option[string]
		if q.Question.Opt {
			options = append(options, huh.NewOption("(none)", ""))
		}
		for _, c := range q.Question.Of {
			options = append(options, huh.NewOption(oneLine(c.Title), c.Value))
		}
		return huh.NewSelect[string]().Key(q.Question.Key).Title(title).Description(help).Options(options...).Value(value)
	}
	check := func(typed string) error {
		if strings.TrimSpace(typed) == "" && (q.Question.Default != nil || (q.Question.Secret && q.Value != nil)) {
			return nil
		}
		_, err := q.Question.Parse(typed)
		return err
	}
	if q.Question.Kind == steps.YAML && !q.Question.Secret {
		return f.textField(q, check)
	}
	in := huh.NewInput().Key(q.Question.Key).Title(title).Description(help).Prompt("> ").Value(value).Validate(check)
	if q.Question.Secret {
		in = in.EchoMode(huh.EchoModePassword)
	}
	return in
}

// help describes a question, its format, and the origin of the current answer.
func (f *form) help(q engine.Answered) string {
	parts := []string{oneLine(q.Question.Help)}
	switch {
	case q.Question.Secret && q.Value != nil:
		parts = append(parts, "Already given; leave empty to keep it. Kept in memory only.")
	case q.Question.Secret:
		parts = append(parts, "Kept in memory only.")
	case q.Value != nil && q.From == "given":
		parts = append(parts, "(your answer)")
	case q.Value != nil && q.From != "":
		parts = append(parts, "(from "+strings.TrimPrefix(oneLine(q.From), "from ")+")")
	case q.Question.Opt:
		parts = append(parts, "(optional)")
	}
	if q.Proposed != "" {
		parts = append(parts, "("+oneLine(q.Proposed)+")")
	}
	if q.Question.Many {
		parts = append(parts, "Separate several values with commas.")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

func (t *theme) formTheme() *huh.Theme {
	plain := t.renderer.NewStyle()
	bar := plain.PaddingLeft(1).BorderStyle(lipgloss.Border{Left: "┃"}).BorderLeft(true)
	f := huh.FieldStyles{
		Base: bar, Title: t.title, Description: t.faint,
		ErrorIndicator: t.bad.SetString(" ✗"), ErrorMessage: t.bad,
		SelectSelector: t.accent.SetString("▸ "), Option: plain, SelectedOption: t.selected,
		NextIndicator: t.accent.SetString(" →"), PrevIndicator: t.accent.SetString("← "),
		TextInput: huh.TextInputStyles{Cursor: plain, CursorText: plain, Placeholder: t.faint, Prompt: t.accent, Text: plain},
	}
	blurred := f
	blurred.Base = plain.PaddingLeft(2)
	blurred.Title, blurred.SelectedOption = plain, t.title
	blurred.NextIndicator, blurred.PrevIndicator = plain, plain.SetString("  ")
	blurred.TextInput.Prompt = t.faint
	return &huh.Theme{
		Focused: f, Blurred: blurred, FieldSeparator: plain.SetString("\n\n"), Form: huh.FormStyles{Base: plain},
		Group: huh.GroupStyles{Base: plain, Title: t.title, Description: t.faint},
	}
}

// formKeys returns the key bindings inside forms. The app handles quit and esc.
func formKeys() *huh.KeyMap {
	k := huh.NewDefaultKeyMap()
	none := key.NewBinding(key.WithDisabled())
	k.Quit, k.Select.Filter, k.Select.SetFilter, k.Select.ClearFilter = none, none, none, none
	k.Text.NewLine = key.NewBinding(key.WithKeys("enter"))
	k.Text.Next, k.Text.Submit = key.NewBinding(key.WithKeys("tab")), key.NewBinding(key.WithKeys("tab"))
	k.Text.Prev, k.Text.Editor = key.NewBinding(key.WithKeys("shift+tab")), none
	k.Input.Next = key.NewBinding(key.WithKeys("enter", "tab", "down"))
	k.Input.Prev = key.NewBinding(key.WithKeys("shift+tab", "up"))
	return k
}

// faintCode matches an SGR sequence that contains the code for faint (2). Only one-digit codes can precede the 2.
var faintCode = regexp.MustCompile(`\x1b\[((?:[13-9];)*)2((?:;[0-9;]+)?)m`)

// manyStyled splits the output of a widget into lines. It removes the faint style, which might be unreadable.
func manyStyled(s string) []string {
	s = faintCode.ReplaceAllStringFunc(s, func(code string) string {
		m := faintCode.FindStringSubmatch(code)
		rest := strings.Trim(m[1]+strings.TrimPrefix(m[2], ";"), ";")
		if rest == "" {
			return ""
		}
		return "\x1b[" + rest + "m"
	})
	return strings.Split(s, "\n")
}
