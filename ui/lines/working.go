package lines

import (
	"context"
	"errors"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// stillEvery is the interval at which the wizard prints what it waits for.
const stillEvery = 10 * time.Second

// settleWithin is how long the wizard waits for the checks of a step after a run. A failure counts as final only after
// all verdicts have been unchanged for the duration calm.
const (
	settleWithin = time.Minute
	calm         = 3 * time.Second
	tickEvery    = 250 * time.Millisecond
)

// errCancelled is returned if the user canceled the wait.
var errCancelled = errors.New("cancelled")

// wait runs do. While do is running, wait calls what every ten seconds and prints the returned text. It also calls the
// functions that it receives from said. The first ctrl+c cancels do, and the second one leaves the wizard.
func (w *walk) wait(what func() string, said <-chan func(), do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	began := time.Now()
	still := time.NewTicker(stillEvery)
	defer still.Stop()
	for stopping := false; ; {
		select {
		case f := <-said:
			f()
		case err := <-done:
			if stopping {
				return errCancelled
			}
			return err
		case <-still.C:
			text := strings.TrimPrefix(strings.TrimRight(model.OneLine(what()), "."), "waiting ")
			w.out.sentence("Still waiting %s, %s", forWhat(text), span(time.Since(began)))
		case <-w.o.Interrupts:
			if stopping {
				return ErrInterrupted
			}
			stopping = true
			cancel()
			w.out.say("Stopping. Press ctrl+c again to quit immediately.")
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		}
	}
}

// forWhat adds "for" to text unless text begins with "until" or "for".
func forWhat(text string) string {
	if strings.HasPrefix(text, "until ") || strings.HasPrefix(text, "for ") {
		return text
	}
	return "for " + text
}

// mine reports whether an error means that the user canceled something or left, or that the wizard's context is done.
func (w *walk) mine(err error) bool {
	return errors.Is(err, errCancelled) || errors.Is(err, ErrInterrupted) || w.ctx.Err() != nil
}

// until waits until reached returns true, but not longer than within. Ctrl+c ends the wait without an error.
func (w *walk) until(within time.Duration, what func() string, reached func() bool) error {
	err := w.wait(what, nil, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		beat := time.NewTicker(tickEvery)
		defer beat.Stop()
		for {
			if reached() {
				return nil
			}
			select {
			case <-w.moved:
			case <-beat.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
	if errors.Is(err, errCancelled) {
		w.out.say("carrick stopped waiting.")
		return nil
	}
	return err
}

// leans returns the cells of a step and all cells on which their verdicts depend.
func (w *walk) leans(step string) []steps.Cell { return w.guide().WithNeeds(w.live.Of(step)) }

// lookWithin is the timeout for checks to run. It is far longer than any check takes.
const lookWithin = time.Minute

// untilLooked waits until every cell has been checked after since. If since is zero, any earlier check counts.
func (w *walk) untilLooked(cells []steps.Cell, since time.Time) error {
	left := func() int { return w.live.Behind(cells, since) }
	return w.until(lookWithin, func() string { return steps.Plural(left(), "check") }, func() bool { return left() == 0 })
}

// settled waits until the checks of the step have run once more and none of them is waiting. If ran is true, it also
// gives failing checks some time to pass.
func (w *walk) settled(ran bool) error {
	name, since := w.current().Name, time.Now()
	cells := w.leans(name)
	if ran { // a run can change the verdict of any check
		w.follow(w.live.Again()...)
	} else {
		w.follow(w.live.Again(cells...)...)
	}
	return w.until(settleWithin, func() string {
		for _, r := range w.rows() {
			for _, c := range r.cells {
				if v := w.live.Board.Verdict(c); v.Status == steps.Waiting {
					return w.live.Title(c, c) + ": " + v.Found
				}
			}
		}
		return steps.Plural(w.live.Behind(cells, since), "check")
	}, func() bool {
		if w.live.Behind(cells, since) > 0 { // the counts below are complete only after these checks
			return false
		}
		n := w.live.Board.Count(name)
		return n.Of(engine.InProgress) == 0 && (!ran || n.Green() || w.live.Quiet() >= calm)
	})
}

type work struct {
	*model.Run
	w    *walk
	said time.Time // time of the last progress message from an action
}

// wordsEvery is the minimum interval between progress messages from an action. Changes and requests to the user are
// always printed.
const wordsEvery = 5 * time.Second

// done maps a verb to its past tense.
var done = map[steps.Verb]string{
	steps.Create: "created", steps.Update: "changed", steps.Replace: "recreated", steps.Delete: "deleted",
	steps.Release: "released",
}

// heard prints the progress. Each change is a sentence, and requests to the user get their own lines. Repetitions are
// only logged, and so are results that the board shows later.
func (k *work) heard(e steps.Event) {
	w, text := k.w, model.OneLine(e.Text)
	where := w.place(e.Step, e.Side)
	was := k.Says
	asks := k.Heard(e)
	switch {
	case e.Verb != "":
		if past := done[e.Verb]; past != "" && text == string(e.Verb)+" "+model.OneLine(e.What) {
			text = past + " " + model.OneLine(e.What)
		} else if e.Verb == steps.Run && text == string(e.Verb)+" "+model.OneLine(e.What) {
			text = "done: " + model.OneLine(e.What)
		}
		w.out.sentence("%s%s", where, text)
	case e.Action == "": // an event from a check, which is printed with the checks
	case asks:
		if len(k.Asked.Lines) == 1 {
			w.out.say("Your turn:")
		}
		w.apart(text)
	case len(k.Asked.Lines) == 0 && text != was:
		if time.Since(k.said) >= wordsEvery {
			k.said = time.Now()
			w.out.sentence("%s%s", where, text)
		}
	}
	w.note(where + text)
}

// apart prints each address in text on its own line.
func (w *walk) apart(text string) {
	at := 0
	part := func(s, end string) {
		if s = strings.Trim(s, " ,.;:"); s != "" {
			w.out.say("%s%s", s, end)
		}
	}
	for _, span := range model.Address.FindAllStringIndex(text, -1) {
		part(text[at:span[0]], ":")
		w.out.say("%s", text[span[0]:span[1]])
		at = span[1]
	}
	part(text[at:], ".")
}

// awaits returns what a run waits for: the user, the current action, or a check.
func (k *work) awaits() string {
	w := k.w
	switch c, waits := w.live.Awaits(k.Run); {
	case len(k.Asked.Lines) > 0:
		return "you"
	case k.Says != "":
		return k.Says
	case k.Plan.Undo:
		return "the clusters to complete the undo"
	case waits:
		return w.live.Title(c, c) + ": " + w.live.Board.Verdict(c).Found
	}
	return "the changes"
}
