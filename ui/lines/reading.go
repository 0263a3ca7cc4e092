package lines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// errAgain is returned if a message was printed and the question must be asked again.
var errAgain = errors.New("ask again")

// read converts the typed text to an answer. If it differs from the current answer, changed is true. An unchanged
// default is not stored as an answer.
func (w *walk) read(a engine.Answered, typed string) (value any, changed bool, err error) {
	q, word := a.Question, strings.TrimSpace(typed)
	if q.Secret {
		return readSecret(a, typed)
	}
	switch word {
	case "":
		if missing(a) {
			return nil, false, errors.New("an answer is required")
		}
		return nil, false, nil
	case "-":
		return emptied(a)
	case `\b`, `\q`, `\?`, `\s`, `\e`, `\-`, `\\`:
		typed = word[1:]
	}
	if q.Kind == steps.YAML {
		if typed, err = w.longText(a, typed, word); err != nil {
			return nil, false, err
		}
	}
	if len(q.Of) > 0 {
		typed = numbered(q, word)
	}
	value, err = q.Parse(typed)
	if err != nil {
		return nil, false, err
	}
	return value, q.Show(value) != q.Show(a.Value), nil
}

// readSecret reads a secret answer. Its errors do not contain the secret.
func readSecret(a engine.Answered, typed string) (any, bool, error) {
	if typed == "" {
		if a.Value == nil && !a.Question.Opt {
			return nil, false, errors.New("an answer is required")
		}
		return nil, false, nil
	}
	if _, err := a.Question.Parse(typed); err != nil {
		return nil, false, fmt.Errorf("the input is not of type %s", a.Question.Kind)
	}
	return masked.New(typed), true, nil
}

// emptied returns the answer after the user cleared it. This is the default, or no answer if the question is optional.
func emptied(a engine.Answered) (any, bool, error) {
	q := a.Question
	switch {
	case q.Opt && q.Default != nil:
		return steps.LeftEmpty, true, nil
	case q.Opt || q.Default != nil:
		return nil, true, nil
	}
	return nil, false, errors.New("an answer is required")
}

// longText reads multi-line text from the editor, or up to a line with only a period. typed is the first line of the
// text.
func (w *walk) longText(a engine.Answered, typed, word string) (string, error) {
	switch word {
	case "s":
		if a.Value == nil {
			w.out.say("It is empty.")
		} else {
			w.out.raw(a.Question.Show(a.Value))
		}
		return "", errAgain
	case "e":
		return w.edited(a)
	}
	text := []string{typed}
	for {
		line, err := w.in.line(w.ctx, false, w.o.Interrupts)
		switch {
		case errors.Is(err, errEnded) && w.in.tty != nil:
			return "", errBack
		case errors.Is(err, errEnded):
			return "", &NoInputError{a.Question.Title, w.insteadOf(a)}
		case err != nil:
			return "", err
		case line == ".":
			return strings.Join(text, "\n") + "\n", nil
		}
		text = append(text, line)
	}
}

// edited opens the text in the user's editor. The editor owns the terminal until it exits.
func (w *walk) edited(a engine.Answered) (string, error) {
	words := model.Editor(w.o.Getenv)
	out, isFile := w.o.Out.(*os.File)
	switch {
	case w.in.tty == nil || !isFile:
		return "", errors.New("an editor requires a terminal; type the lines, then a line with only a full stop")
	case len(words) == 0:
		return "", errors.New("no editor is set: set VISUAL or EDITOR before you start carrick, or type the lines")
	}
	path, err := model.DraftFile(a.Question.Show(a.Value))
	if err != nil {
		return "", fmt.Errorf("the editor was not opened: %w", err)
	}
	defer func() { _ = os.Remove(path) }()
	cmd := model.EditCommand(words, path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = w.in.tty, out, out
	err = cmd.Run()
	for len(w.o.Interrupts) > 0 {
		<-w.o.Interrupts // the ctrl+c was meant for the editor
	}
	if err != nil {
		return "", fmt.Errorf("the text is unchanged: %s: %w", filepath.Base(words[0]), err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the text is unchanged: %w", err)
	}
	return string(text), nil
}
