package lines

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
)

// stillEvery is how often it is said what is waited for.
const stillEvery = 10 * time.Second

// settleWithin is how long the checks of a step are waited for after a run, and
// calm for how long nothing may move for what fails to count as settled.
const (
	settleWithin = time.Minute
	calm         = 3 * time.Second
	beatEvery    = 250 * time.Millisecond
)

// errCancelled says that the user did not want to wait any longer.
var errCancelled = errors.New("cancelled")

// wait does what takes time, and says every ten seconds what for. What comes on
// said is done in between. The first ctrl+c cancels, the second one leaves.
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
			text := strings.TrimPrefix(strings.TrimRight(oneLine(what()), "."), "waiting ")
			w.out.sentence("Still waiting %s, %s", forWhat(text), span(time.Since(began)))
		case <-w.o.Interrupts:
			if stopping {
				return ErrInterrupted
			}
			stopping = true
			cancel()
			w.out.say("Stopping. Ctrl+c again leaves at once.")
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		}
	}
}

// forWhat joins what is waited for to the words before it.
func forWhat(text string) string {
	if strings.HasPrefix(text, "until ") || strings.HasPrefix(text, "for ") {
		return text
	}
	return "for " + text
}

// mine tells whether an error is how the user, or what started carrick, ended
// something.
func (w *walk) mine(err error) bool {
	return errors.Is(err, errCancelled) || errors.Is(err, ErrInterrupted) || w.ctx.Err() != nil
}

// until waits for something on the board, at most that long. Ctrl+c ends the
// waiting, and that is no error.
func (w *walk) until(within time.Duration, what func() string, reached func() bool) error {
	err := w.wait(what, nil, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		beat := time.NewTicker(beatEvery)
		defer beat.Stop()
		for {
			next := w.board.next()
			if reached() {
				return nil
			}
			select {
			case <-next:
			case <-beat.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
	if errors.Is(err, errCancelled) {
		w.out.say("It is not waited for any longer.")
		return nil
	}
	return err
}

// lookWithin is far above what one look may take.
const lookWithin = time.Minute

// untilLooked waits until all of those cells have been looked at.
func (w *walk) untilLooked(cells map[steps.Cell]bool) error {
	left := func() int { return w.board.behind(cells, time.Time{}) }
	return w.until(lookWithin, func() string { return plural(left(), "check") }, func() bool { return left() == 0 })
}

// settled waits until the checks of the step have been looked at once more and
// none of them waits for something. After a run, what fails gets a moment to
// come to hold.
func (w *walk) settled(ran bool) error {
	name := w.current().Name
	cells := w.board.closure(name)
	w.board.again(cells)
	return w.until(settleWithin, func() string {
		for _, r := range w.rows() {
			for _, c := range r.cells {
				if v := w.board.verdict(c); v.Status == steps.Waiting {
					return w.role(c.Side) + ": " + r.check.Title + ": " + v.Found
				}
			}
		}
		return plural(w.board.behind(cells, time.Time{}), "check")
	}, func() bool {
		n := w.board.count(name)
		return w.board.behind(cells, time.Time{}) == 0 && n.Of(steps.Waiting) == 0 && (!ran || n.Green() || w.board.quiet() >= calm)
	})
}

// address is a web address inside a text; a full stop after it is none of it.
var address = regexp.MustCompile(`https?://[^\s<>"']*[^\s<>"'.,;:!?)\]]`)

// work is one use of Apply or Undo.
type work struct {
	w       *walk
	plan    *engine.Plan
	changed int
	asks    string          // the action that waits for a person
	asked   map[string]bool // actions that have asked in so many words
	now     string          // what it is at, in its own words; "": not known
	said    time.Time       // when such words were said last
}

// wordsEvery is how often an action is heard in words of its own; what it
// changes, and what it asks for, is always said.
const wordsEvery = 5 * time.Second

// done says a change in the past tense.
var done = map[steps.Verb]string{
	steps.Create: "created", steps.Update: "changed", steps.Replace: "made anew", steps.Delete: "deleted", steps.Release: "released",
}

// heard says what is being done: a sentence a change, and on lines of its own
// what a person has to do. What only repeats itself, or stands on the board
// afterwards, is for the log.
func (k *work) heard(e steps.Event) {
	w, text := k.w, oneLine(e.Text)
	where := w.place(e.Step, e.Side)
	if k.asks != "" && (e.Verb != "" || e.Action != k.asks) {
		k.asks = ""
	}
	if e.Asks {
		k.asked[e.Action] = true
	}
	switch {
	case e.Verb != "":
		k.changed++
		k.now = ""
		if past := done[e.Verb]; past != "" && text == string(e.Verb)+" "+oneLine(e.What) {
			text = past + " " + oneLine(e.What)
		} else if e.Verb == steps.Run && text == string(e.Verb)+" "+oneLine(e.What) {
			text = "done: " + oneLine(e.What)
		}
		w.out.sentence("%s%s", where, text)
	case e.Action == "": // the checks say it
	case e.Asks || (!k.asked[e.Action] && address.MatchString(text)):
		if k.asks == "" {
			w.out.say("This is for you to do:")
		}
		k.asks = e.Action
		w.apart(text)
	case k.asks == "" && text != k.now:
		k.now = text
		if time.Since(k.said) >= wordsEvery {
			k.said = time.Now()
			w.out.sentence("%s%s", where, text)
		}
	}
	w.note(where + text)
}

// apart says a text with each address on a line of its own.
func (w *walk) apart(text string) {
	at := 0
	part := func(s, end string) {
		if s = strings.Trim(s, " ,.;:"); s != "" {
			w.out.say("%s%s", s, end)
		}
	}
	for _, span := range address.FindAllStringIndex(text, -1) {
		part(text[at:span[0]], ":")
		w.out.say("%s", text[span[0]:span[1]])
		at = span[1]
	}
	part(text[at:], ".")
}

// awaits is what a run waits for: the check that an action needs, else one that
// the actions shall make hold.
func (k *work) awaits() string {
	w := k.w
	if k.asks != "" {
		return "you"
	}
	if k.now != "" {
		return k.now
	}
	if k.plan.Undo {
		return "the clusters to take it back"
	}
	say := func(c steps.Cell) string {
		check, _ := w.guide().Check(c.Check)
		return w.role(c.Side) + ": " + check.Title + ": " + w.board.verdict(c).Found
	}
	for _, act := range k.plan.Actions {
		for _, need := range w.guide().NeedsOf(act.Action, act.Side) {
			if !w.board.verdict(need).Allows() && !k.plan.Mends(w.guide(), need) {
				return say(need)
			}
		}
	}
	for _, c := range w.guide().Cells() {
		if s := w.board.verdict(c).Status; k.plan.Mends(w.guide(), c) && !s.Holds() && s != steps.Skip {
			return say(c)
		}
	}
	return "the changes"
}
