package ui

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/huh"

	"carrick/steps/engine"
	"carrick/ui/model"
)

// longText binds a draft to a text field. The field shows tabs as blanks, which does not count as a change.
type longText struct{ draft *string }

func (l longText) Get() string { return *l.draft }

func (l longText) Set(shown string) {
	if shown != strings.ReplaceAll(*l.draft, "\t", "    ") {
		*l.draft = shown
	}
}

// textField returns the multi-line field of a question.
func (f *form) textField(q engine.Answered, check func(string) error) huh.Field {
	field := huh.NewText().Key(q.Question.Key).Title(oneLine(q.Question.Title)).Description(f.help(q)).
		Lines(max(3, min(12, f.p.a.panelHeight()-6))).ExternalEditor(false).
		Accessor(longText{f.draft(q)}).Validate(check)
	f.texts[q.Question.Key] = field
	toTop(field)
	return field
}

// toTop moves the cursor to the start of the text, because huh leaves it at the end.
func toTop(field *huh.Text) {
	field.Focus()
	field.Update(tea.KeyMsg{Type: tea.KeyCtrlHome})
	field.Blur()
}

// focused returns the question whose field has the focus.
func (f *form) focused() *engine.Answered {
	for i := range f.asked {
		if f.asked[i].Question.Key == f.form.GetFocusedField().GetKey() {
			return &f.asked[i]
		}
	}
	return nil
}

// editedMsg is sent when the editor has exited.
type editedMsg struct {
	key, text string
	err       error
}

// edit opens the text of a question in the user's editor. The editor owns the terminal until it exits.
func (f *form) edit(q *engine.Answered) tea.Cmd {
	words := f.p.a.editor
	if len(words) == 0 {
		f.said = "no editor is set: set VISUAL or EDITOR before you start carrick, or type in the field"
		return nil
	}
	path, err := model.DraftFile(*f.draft(*q))
	if err != nil {
		f.said = "the editor was not opened: " + err.Error()
		return nil
	}
	key := q.Question.Key
	cmd := model.EditCommand(words, path)
	cmd.Stdin = f.p.a.o.In // the terminal itself, not the listener
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		text, readErr := os.ReadFile(path)
		_ = os.Remove(path)
		if err != nil {
			err = fmt.Errorf("%s: %w", filepath.Base(words[0]), err)
		}
		return editedMsg{key, string(text), errors.Join(err, readErr)}
	})
}

// edited copies the edited text into the field. If the editor failed, nothing changes. An invalid answer is kept and
// shown with an error message.
func (f *form) edited(m editedMsg) {
	for _, q := range f.asked {
		if q.Question.Key != m.key {
			continue
		}
		if m.err != nil {
			f.said = "the text is unchanged: " + m.err.Error()
			return
		}
		*f.draft(q) = m.text
		f.texts[m.key].Accessor(longText{f.draft(q)})
		if _, _, err := f.typed(q); err != nil {
			f.said = q.Question.Title + ": " + err.Error()
		}
	}
}
