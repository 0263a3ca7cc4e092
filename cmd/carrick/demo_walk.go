package main

import (
	"context"
	"strconv"

	"github.com/spf13/pflag"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui"
)

// autoplay is how the demo walks by itself.
type autoplay struct {
	on, undo bool
	pace     string
}

func (w *autoplay) add(to *pflag.FlagSet) {
	to.BoolVar(&w.on, "autoplay", false, "walk through the guide by itself, with captions; space pauses")
	to.StringVar(&w.pace, "pace", "normal", "with --autoplay: slow, normal, fast, or a factor such as 1.5")
	to.BoolVar(&w.undo, "undo", false, "with --autoplay: take everything back at the end")
}

// paces are the paces that have a name.
var paces = map[string]float64{"slow": 0.7, "normal": 1, "fast": 2}

// The fastest and the slowest pace that makes sense.
const slowest, fastest = 0.1, 100

// factor is the pace as a number; not ok where it is none.
func (w *autoplay) factor() (f float64, ok bool) {
	if f, ok = paces[w.pace]; ok {
		return f, true
	}
	f, err := strconv.ParseFloat(w.pace, 64)
	return f, err == nil && f >= slowest && f <= fastest
}

func (w *autoplay) valid(flags *pflag.FlagSet) error {
	for _, name := range []string{"pace", "undo"} {
		if flags.Changed(name) && !w.on {
			return usage("--%s says how to walk: add --autoplay", name)
		}
	}
	if flags.Changed("list") && w.on {
		return usage("--list and --autoplay exclude each other")
	}
	if _, ok := w.factor(); !ok {
		return usage("--pace %q: want slow, normal, fast, or a factor from %v to %v", w.pace, slowest, fastest)
	}
	return nil
}

// plan is the walk with those answers; nil: the wizard waits for keys.
func (w *autoplay) plan(answers map[string]string) *ui.Walk {
	if !w.on {
		return nil
	}
	pace, _ := w.factor()
	return &ui.Walk{Pace: pace, Answers: answers, Undo: w.undo, Helped: "Here a stand-in answers for one."}
}

// whatBreaks are the cells that breaking the demo's clusters makes fail: a guide
// that nothing was done for yet fails in many other places.
func (a *app) whatBreaks(ctx context.Context, box *sandbox, guide string, do func() error) ([]steps.Cell, error) {
	l := linkfile.New(guide, demoLink)
	l.Local, l.Remote = box.end(steps.Local), box.end(steps.Remote)
	look := func() (*engine.Board, []steps.Cell, error) {
		s, err := a.session(l, cluster.Options{Once: true})
		if err != nil {
			return nil, nil, err
		}
		defer s.Close()
		cells := s.Guide().Cells()
		b, _, err := a.look(ctx, s, cells, 0)
		return b, cells, err
	}
	before, _, err := look()
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	after, cells, err := look()
	if err != nil {
		return nil, err
	}
	var out []steps.Cell
	for _, c := range cells {
		now := after.Verdict(c).Status
		if (now == steps.Fail || now == steps.Unknown) && now != before.Verdict(c).Status {
			out = append(out, c)
		}
	}
	return out, nil
}
