package lines

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"carrick/steps/engine"
)

// choice is a command that the user can choose by its letter or its word.
type choice struct {
	letter, word string
	args         string // as shown in the help
	means        string
	do           func(args string) error
}

// errMoved is returned if the user chose another step.
var errMoved = errors.New("moved")

// choices lists the commands at the prompt of a step, in the order of the help. The prompt itself handles a command
// without a function.
func (w *walk) choices() []choice {
	return []choice{
		{"a", "apply", "", "applies this step: shows the plan, and asks", w.apply},
		{"d", "diff", "", "reads line by line what applying would change", w.diff},
		{"f", "fix", "N", "fixes only check N", w.fix},
		{"e", "answers", "", "reads the answers of this step, and changes them", w.answers},
		{"c", "checks", "", "lists all checks of this step by number, with their findings", w.checks},
		{"x", "explain", "N", "explains check N", w.explain},
		{"r", "again", "", "checks again, and reads the changes", w.again},
		{"u", "undo", "", "undoes this step; u all undoes the whole link", w.undo},
		{"n", "next", "", "goes to the next step", w.goOn},
		{"b", "back", "", "goes to the step before", nil},
		{"h", "handover", "", "writes a facts file of one side for the admin of the other", w.handOver},
		{"s", "summary", "", "lists the state of all steps", w.toSummary},
		{"m", "map", "", "reads the map of both sides, with the state of each object", w.sayMap},
		{"l", "log", "", "reads the log: changes and errors", w.sayLog},
	}
}

// brief names the choices that currently apply.
func (w *walk) brief() string {
	var out []string
	s := w.current()
	if w.live.Appliable(s.Name) {
		out = append(out, "a apply", "d diff")
	}
	if len(s.Actions) > 0 {
		out = append(out, "u undo")
	}
	if len(s.Ask) > 0 {
		out = append(out, "e answers")
	}
	return "Choices: " + strings.Join(append(out, "n next", "b back", "q quit", "? for all"), ", ") + "."
}

// choose asks for a choice and executes it. It repeats this until another step is chosen. It calls enter for an empty
// line.
func (w *walk) choose(prompt string, enter func(string) error, list []choice) error {
	for {
		text, err := w.ask(question{prompt: prompt, help: func() { w.help(list) }, instead: w.instead()})
		if errors.Is(err, errBack) {
			err = w.goBack("")
		} else if err == nil {
			err = w.chosen(text, enter, list)
		}
		switch {
		case errors.Is(err, errMoved):
			return nil
		case err != nil:
			return err
		}
	}
}

// chosen executes the typed choice. This is a letter or word with its arguments, or a step to go to.
func (w *walk) chosen(text string, enter func(string) error, list []choice) error {
	typed, args, _ := strings.Cut(strings.TrimSpace(text), " ")
	typed, args = strings.ToLower(typed), strings.TrimSpace(args)
	switch typed {
	case "":
		return enter("")
	case "quit":
		return errQuit
	case "help":
		w.help(list)
		return nil
	case "back":
		return w.goBack("")
	}
	for _, c := range list {
		if c.do != nil && (typed == c.letter || typed == c.word) {
			return c.do(args)
		}
	}
	if at, ok := w.stepOf(strings.TrimSpace(text)); ok {
		w.at = at
		return errMoved
	}
	w.out.sentence("%s is not a choice or a step; ? lists them all", quoted(text))
	return nil
}

// stepOf returns the index of the step with the given number, name or title.
func (w *walk) stepOf(text string) (int, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return n - 1, n >= 1 && n <= len(w.guide().Steps)+1
	}
	for i := range w.guide().Steps {
		if s := &w.guide().Steps[i]; strings.EqualFold(text, s.Name) || strings.EqualFold(text, s.Title) {
			return i, true
		}
	}
	return 0, false
}

func (w *walk) goOn(string) error {
	w.at++
	return errMoved
}

func (w *walk) goBack(string) error {
	if w.at == 0 {
		w.out.say("This is the first step: q quits.")
		return nil
	}
	w.at--
	return errMoved
}

func (w *walk) toSummary(string) error {
	w.at = len(w.guide().Steps)
	return errMoved
}

func (w *walk) sayLog(string) error {
	if len(w.log) == 0 {
		w.out.say("Nothing was changed and no errors occurred.")
	}
	for _, e := range w.log {
		w.out.sentence("%s: %s", e.at.Format("15:04:05"), e.text)
	}
	return nil
}

// help prints all choices, the meaning of the statuses, and the global choices.
func (w *walk) help(list []choice) {
	for _, c := range list {
		w.out.sentence("%s: %s", strings.TrimSpace(c.letter+" "+c.args), c.means)
	}
	w.out.sentence(
		"A number from 1 to %d, or the name of a step: goes to that step; %d is the summary", len(w.guide().Steps),
		len(w.guide().Steps)+1,
	)
	w.out.say("q: quits; you can continue later.")
	w.out.say("Enter: reads the changes since your last input. carrick prints nothing while it waits for you.")
	w.out.say("Words work like letters: apply, diff, next. Ctrl+c cancels what is running, or quits.")
	for _, s := range []struct {
		state engine.State
		means string
	}{
		{engine.Failed, "something is broken"},
		{engine.ToDo, "carrick or you have not done this yet"},
		{engine.Later, "it is blocked by a check that does not pass yet"},
		{engine.Warning, "it passes, with a warning"},
		{engine.Unknown, "it could not be checked, so it does not count as passed"},
		{engine.Off, "an answer makes it not applicable"},
		{engine.Skipped, "it was not checked, for the reason given"},
		{engine.InProgress, "it is in progress"},
	} {
		w.out.sentence("For a check, %q means: %s", word(s.state), s.means)
	}
	for _, n := range w.o.Notes {
		w.out.say("%s", n)
	}
}

// instead returns the commands that work without prompts.
func (w *walk) instead() string {
	path := w.path()
	return fmt.Sprintf("carrick check %s checks, and carrick apply %s --yes applies everything", path, path)
}
