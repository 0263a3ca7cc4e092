package lines

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"carrick/steps"
	"carrick/ui/farewell"
	"carrick/ui/model"
)

// walk is the state of the line-based wizard.
type walk struct {
	o   Options
	ctx context.Context
	in  *input
	out *voice
	dir string // the working directory; "" if unknown

	live    *model.Live                 // nil until a link is open
	moved   chan struct{}               // receives a value after each check result
	at      int                         // index of the step; the number of steps means the summary
	told    map[steps.Cell]steps.Result // verdicts as last printed
	visited map[string]bool             // steps whose missing answers have been asked for
	log     []entry
	changed time.Time // when the last run that changed something ended
	summed  bool      // the last output was the summary
}

type entry struct {
	at   time.Time
	text string
}

// errQuit and errBack are returned for the answers q and b.
var (
	errQuit = errors.New("quit")
	errBack = errors.New("back")
)

func newWalk(ctx context.Context, o Options) *walk {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	w := &walk{
		o: o, ctx: ctx, in: newInput(o.In), out: &voice{w: o.Out},
		moved: make(chan struct{}, 1), told: map[steps.Cell]steps.Result{}, visited: map[string]bool{},
	}
	if o.ASCII {
		w.out.plain = strings.NewReplacer(asciiOf...)
	}
	w.dir, _ = os.Getwd() // used only to shorten paths
	return w
}

// through runs the whole wizard. It opens a link and then visits its steps.
func (w *walk) through() error {
	if w.o.Banner != "" {
		w.out.sentence("This is carrick in text mode; %s", w.o.Banner)
	} else {
		w.out.say("This is carrick in text mode.")
	}
	w.out.say("At every question, ? is help, b goes back and q quits.")
	if err := w.open(); err != nil {
		return err
	}
	for {
		if err := w.visit(); err != nil {
			return err
		}
	}
}

// follow runs check loops in the background. Each of the given turns starts one loop.
func (w *walk) follow(turns ...model.Turn) {
	for _, t := range turns {
		go func() {
			for ok := true; ok; {
				t, ok = w.live.Next(t)
				select {
				case w.moved <- struct{}{}:
				default:
				}
			}
		}()
	}
}

// visit runs the current step or the summary. Both set the next step.
func (w *walk) visit() error {
	if w.at == len(w.guide().Steps) {
		return w.summary()
	}
	return w.step()
}

func (w *walk) guide() *steps.Guide { return w.live.Guide() }

func (w *walk) current() *steps.Step { return &w.guide().Steps[w.at] }

func (w *walk) role(s steps.Side) string { return w.live.Role(s) }

// flag returns the value of the flag --side for a side.
func (w *walk) flag(s steps.Side) string { return w.guide().Sides[s].Flag() }

// question is a prompt for one line.
type question struct {
	prompt  string
	help    func()
	secret  bool
	instead string // the command that does the same without a prompt
}

// ask prompts until there is an answer. The answers b, ? and q have the same meaning at every prompt.
func (w *walk) ask(q question) (string, error) {
	for {
		if w.out.err != nil {
			return "", w.out.err
		}
		w.out.prompt(q.prompt)
		text, err := w.in.line(w.ctx, q.secret, w.o.Interrupts)
		if w.in.tty == nil || q.secret || err != nil {
			w.out.write("\n") // no newline was echoed, so end the line of the prompt
		}
		switch {
		case errors.Is(err, errEnded) && w.in.tty != nil:
			return "", errQuit // ctrl+d
		case errors.Is(err, errEnded):
			return "", &NoInputError{q.prompt, q.instead}
		case err != nil:
			return "", err
		}
		switch strings.TrimSpace(text) {
		case "?":
			q.help()
			continue
		case "b":
			return "", errBack
		case "q":
			return "", errQuit
		}
		return text, nil
	}
}

func (w *walk) note(text string) { w.log = append(w.log, entry{time.Now(), model.OneLine(text)}) }

// trouble prints an error. It also records the error in the wizard's log and in Options.Log.
func (w *walk) trouble(before string, err error) {
	lines := manyLines(err.Error())
	w.out.sentence("%s%s", before, lines[0])
	if len(lines) > 1 {
		w.out.raw(strings.Join(lines[1:], "\n"))
	}
	w.note(before + err.Error())
	w.o.Trouble(err)
}

func (w *walk) close() {
	if w.live != nil {
		w.live.Session.Close()
	}
}

func (w *walk) stand() farewell.Stand {
	return farewell.Stand{Guide: w.guide(), Link: w.live.Session.Link(), Board: w.live.Board, Dir: w.dir}
}

// path returns the path of the link file for display.
func (w *walk) path() string { return farewell.ShortPath(w.dir, w.live.Session.Link().Path) }
