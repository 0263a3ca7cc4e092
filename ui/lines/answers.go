package lines

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// asked returns the applicable questions of the step with their answers.
func (w *walk) asked() (out []engine.Answered, err error) {
	if len(w.current().Ask) == 0 {
		return nil, nil
	}
	var list []engine.Answered
	err = w.wait(func() string { return "the answers of this step" }, nil, func(ctx context.Context) error {
		list = w.live.Session.Answers(ctx, w.current())
		return nil
	})
	for _, a := range list {
		if a.Asked {
			out = append(out, a)
		}
	}
	if errors.Is(err, errCancelled) {
		err = nil
	}
	return out, err
}

// missing reports whether a question requires an answer and has none.
func missing(a engine.Answered) bool {
	return a.Value == nil && a.Err == nil && !a.Question.Opt
}

// neededAnswers asks the questions of a step that require an answer and have none. It asks only on the first visit. It
// returns all answers of the step.
func (w *walk) neededAnswers() ([]engine.Answered, error) {
	list, err := w.asked()
	if err != nil || w.visited[w.current().Name] {
		return list, err
	}
	w.visited[w.current().Name] = true
	for _, a := range list {
		if missing(a) {
			if err := w.askAnswers(true); err != nil {
				return list, err
			}
			return w.asked()
		}
	}
	return list, nil
}

// askAnswers asks the questions of the step. If needed is true, it asks only those without an answer. It saves each
// answer immediately. It returns errBack if there was no question, or if the user went back from the first question.
func (w *walk) askAnswers(needed bool) error {
	list, err := w.asked()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		w.out.say("This step has no questions.")
		return errBack
	}
	was := map[string]bool{}
	for _, a := range list {
		was[a.Question.Key] = !needed || missing(a)
	}
	for i := 0; i < len(list); {
		a := list[i]
		if asks, known := was[a.Question.Key]; known && !asks {
			i++
			continue
		}
		changed, err := w.askOne(a, i+1, len(list))
		switch {
		case errors.Is(err, errBack) && i == 0:
			return errBack
		case errors.Is(err, errBack):
			i--
			continue
		case err != nil:
			return err
		}
		i++
		if changed { // other questions can apply now, or have another default
			if list, err = w.asked(); err != nil {
				return err
			}
		}
	}
	return nil
}

// askOne asks one question until the user gives a valid answer, and saves the answer. It reports whether the answer has
// changed.
func (w *walk) askOne(a engine.Answered, n, of int) (bool, error) {
	q := a.Question
	w.out.sentence("Answer %d of %d: %s", n, of, q.Title)
	w.out.sentence("%s", q.Help)
	w.sayAnswer(a)
	for {
		text, err := w.ask(question{
			prompt: w.answerPrompt(a), secret: q.Secret,
			help:    func() { w.answerHelp(a) },
			instead: w.insteadOf(a),
		})
		if err != nil {
			return false, err
		}
		value, changed, err := w.read(a, text)
		switch {
		case errors.Is(err, errAgain):
			continue
		case err != nil && w.passes(err):
			return false, err
		case err != nil:
			w.out.sentence("Invalid answer: %s", err)
			continue
		case !changed:
			return false, nil
		}
		return true, w.save(q, value)
	}
}

// passes reports whether the caller must return err instead of asking again, because err is not about the typed text.
func (w *walk) passes(err error) bool {
	return w.mine(err) || errors.Is(err, errBack) || errors.Is(err, errQuit) || errors.As(err, new(*NoInputError))
}

// sayAnswer prints the current answer, its origin, and the choices.
func (w *walk) sayAnswer(a engine.Answered) {
	q := a.Question
	switch {
	case q.Secret && a.Value != nil:
		w.out.say("Already given, and kept in memory only.")
	case q.Secret:
		w.out.say("The value is kept in memory only, and not shown while you type.")
	case a.Err != nil:
		w.out.sentence("The default cannot be read: %s", failure.Explain(a.Err))
	case a.Value == nil || q.Show(a.Value) == "":
		w.out.say("Now empty.")
	case q.Kind == steps.YAML:
		w.out.sentence(
			"Now %s, %s", steps.Plural(strings.Count(strings.TrimRight(q.Show(a.Value), "\n"), "\n")+1, "line"), from(a),
		)
	default:
		w.out.sentence("Now: %s, %s", shown(q, a.Value), from(a))
	}
	if a.Proposed != "" {
		w.out.sentence("%s", model.OneLine(a.Proposed))
	}
	for i, c := range q.Of {
		w.out.sentence("%d: %s", i+1, c.Title)
	}
}

func from(a engine.Answered) string {
	if a.From == "given" || a.From == "" {
		return "given by you"
	}
	return "from " + strings.TrimPrefix(model.OneLine(a.From), "from ")
}

func shown(q *steps.Question, v any) string {
	text := model.OneLine(q.Show(v))
	switch {
	case q.Kind == steps.YesNo && text == "true":
		return "yes"
	case q.Kind == steps.YesNo && text == "false":
		return "no"
	}
	for i, c := range q.Of {
		if c.Value == text {
			return fmt.Sprintf("%d, %s", i+1, model.OneLine(c.Title))
		}
	}
	return text
}

func (w *walk) answerPrompt(a engine.Answered) string {
	q, keeps := a.Question, a.Value != nil || a.Question.Opt
	rest := ""
	if keeps {
		rest = ", Enter keeps it"
	}
	switch {
	case q.Secret:
		return model.OneLine(q.Title) + rest + ":"
	case q.Kind == steps.YAML:
		return "Text, s reads it" + rest + ":"
	case q.Kind == steps.YesNo:
		return "Yes or no" + rest + ":"
	case len(q.Of) > 0:
		return fmt.Sprintf("1 to %d%s:", len(q.Of), rest)
	case q.Many:
		return "Values separated by commas" + rest + ":"
	}
	return "Answer" + rest + ":"
}

func (w *walk) answerHelp(a engine.Answered) {
	q := a.Question
	w.out.sentence("%s: %s", q.Key, q.Help)
	kind := string(q.Kind)
	if q.Many {
		kind = "several values of type " + kind + ", separated by commas"
	}
	w.out.sentence("Type of the answer: %s", kind)
	w.out.say("Enter keeps the current answer. A hyphen alone empties it, or restores the default. b goes to the " +
		"previous question.")
	if q.Kind == steps.YAML {
		w.out.say("s reads the text. To enter a new text, type its lines and then a line with only a full stop. e opens " +
			"the text in your editor.")
	}
	if !q.Secret {
		w.out.say(`To enter b, q, ?, s, e or a hyphen as the answer, type a backslash before it: \b is the answer b.`)
	}
}

// insteadOf returns how to give an answer without a prompt.
func (w *walk) insteadOf(a engine.Answered) string {
	if a.Question.Secret {
		return "--secret " + a.Question.Key + "=@FILE"
	}
	return "set " + a.Question.Key + " in " + w.path() + ", under answers, then run carrick apply " + w.path() + " --yes"
}

func (w *walk) save(q *steps.Question, value any) error {
	if err := w.live.Session.Answer(q.Key, value); err != nil {
		w.trouble("The answer was not saved: ", err)
		return nil
	}
	if q.Secret {
		w.out.say("carrick keeps the answer until you quit.")
		return nil
	}
	if err := w.live.Session.Save(); err != nil {
		w.trouble("The answer was not saved: ", err)
		return nil
	}
	w.out.say("Saved.")
	return nil
}

// numbered returns the value of the choice that the user entered by number, title or value. It returns other text
// unchanged.
func numbered(q *steps.Question, text string) string {
	for _, c := range q.Of {
		if c.Value == text {
			return text
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Of) {
		return q.Of[n-1].Value
	}
	for _, c := range q.Of {
		if strings.EqualFold(model.OneLine(c.Title), text) || strings.EqualFold(c.Value, text) {
			return c.Value
		}
	}
	return text
}
